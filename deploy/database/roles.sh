#!/bin/sh
# Makes the three roles, in a new database. The image of PostgreSQL runs it once, before it accepts other connections; for
# a server that exists, an administrator runs it with these variables and psql's own (PGHOST, PGUSER, PGDATABASE).
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 \
    --username "${POSTGRES_USER:-${PGUSER:-postgres}}" --dbname "${POSTGRES_DB:-${PGDATABASE:-memory}}" \
    --set owner="$FOLDBACK_OWNER_PASSWORD" \
    --set writer="$FOLDBACK_WRITER_PASSWORD" \
    --set reader="$FOLDBACK_READER_PASSWORD" <<'END'
CREATE ROLE foldback_owner LOGIN PASSWORD :'owner';
CREATE ROLE foldback_writer LOGIN PASSWORD :'writer';
CREATE ROLE foldback_reader LOGIN PASSWORD :'reader';
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO foldback_owner;
GRANT USAGE ON SCHEMA public TO foldback_writer, foldback_reader;
END
