#!/usr/bin/env bash
# What the official postgres image promises, as far as pgidem and testcontainers use it: POSTGRES_USER, POSTGRES_PASSWORD,
# POSTGRES_DB (each also as a file, with _FILE), POSTGRES_INITDB_ARGS, POSTGRES_HOST_AUTH_METHOD, PGDATA and
# /docker-entrypoint-initdb.d. While the scripts there run, the server listens on its socket only, so the line that says
# it is ready appears twice.
set -Eeo pipefail

# A value, or the file that holds it; never both.
from_file() {
  local file=${1}_FILE
  if [ -n "${!1:-}" ] && [ -n "${!file:-}" ]; then
    echo "set $1 or $file, not both" >&2
    exit 1
  fi
  [ -z "${!file:-}" ] || export "$1=$(<"${!file}")"
  [ -n "${!1:-}" ] || export "$1=${2:-}"
  unset "$file"
}

initialise() {
  from_file POSTGRES_PASSWORD
  from_file POSTGRES_USER postgres
  from_file POSTGRES_DB "$POSTGRES_USER"
  from_file POSTGRES_INITDB_ARGS
  local method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}
  if [ -z "$POSTGRES_PASSWORD" ] && [ "$method" != trust ]; then
    echo 'the database is not initialised, and it has no password for its superuser: set POSTGRES_PASSWORD' >&2
    exit 1
  fi

  eval "initdb --username=\"\$POSTGRES_USER\" --pwfile=<(printf '%s\n' \"\$POSTGRES_PASSWORD\") --auth=trust $POSTGRES_INITDB_ARGS"
  printf '\nhost all all all %s\n' "$method" >>"$PGDATA/pg_hba.conf"

  pg_ctl --pgdata="$PGDATA" --wait --options="$(printf '%q ' "${@:2}" -c listen_addresses= -p "${PGPORT:-5432}")" start
  export PGHOST= PGUSER=$POSTGRES_USER
  if [ "$POSTGRES_DB" != postgres ]; then
    psql -X -q -v ON_ERROR_STOP=1 -d postgres -v name="$POSTGRES_DB" <<<'create database :"name";'
  fi
  export PGDATABASE=$POSTGRES_DB
  for script in /docker-entrypoint-initdb.d/*; do
    case $script in
      *.sh) if [ -x "$script" ]; then "$script"; else . "$script"; fi ;;
      *.sql) psql -X -v ON_ERROR_STOP=1 -f "$script" ;;
      *.sql.gz) gunzip -c "$script" | psql -X -v ON_ERROR_STOP=1 ;;
    esac
  done
  unset PGHOST PGUSER PGDATABASE
  pg_ctl --pgdata="$PGDATA" --wait --mode=fast stop
}

[ "${1:0:1}" != - ] || set -- postgres "$@"
if [ "$1" = postgres ]; then
  if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA"
    chown -R postgres: "$PGDATA"
    chmod 700 "$PGDATA"
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
  fi
  [ -s "$PGDATA/PG_VERSION" ] || initialise "$@"
fi
exec "$@"
