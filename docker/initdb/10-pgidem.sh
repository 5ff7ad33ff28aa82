#!/bin/bash
# Installs pgidem in POSTGRES_DB and schedules its cleanup; runs once, when the database is initialised.
set -eu
psql -X -q -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" <<'SQL'
create extension pg_cron;
\i /usr/local/share/pgidem/install.sql
select pgidem.schedule_cleanup();
SQL
