#!/bin/bash
# Loads pg_cron into the server, for the database that the environment names. What the caller gives after "postgres" comes
# later on the command line and wins; one who sets shared_preload_libraries names pg_cron there too.
set -eu

# As the official image reads its variables: a value, or the file that holds it.
setting() {
  local file=${1}_FILE
  if [ -n "${!1:-}" ]; then
    echo "${!1}"
  elif [ -n "${!file:-}" ]; then
    cat "${!file}"
  else
    echo "$2"
  fi
}

if [ $# -eq 0 ] || [ "${1:0:1}" = - ]; then
  set -- postgres "$@"
fi
if [ "$1" = postgres ]; then
  shift
  set -- postgres \
    -c shared_preload_libraries=pg_cron \
    -c cron.database_name="$(setting POSTGRES_DB "$(setting POSTGRES_USER postgres)")" \
    -c cron.use_background_workers=on \
    -c max_worker_processes=20 \
    "$@"
fi
exec docker-entrypoint.sh "$@"
