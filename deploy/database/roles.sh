#!/bin/sh
# Makes the three roles, in a new database. The image of PostgreSQL runs it once, before it accepts other connections; for
# a server that exists, an administrator runs it with these variables, those of psql (PGHOST, PGUSER, PGDATABASE), and
# psql 15 or later.
set -eu
: "${FOLDBACK_OWNER_PASSWORD:?}" "${FOLDBACK_WRITER_PASSWORD:?}" "${FOLDBACK_READER_PASSWORD:?}"
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --single-transaction \
    --username "${POSTGRES_USER:-${PGUSER:-postgres}}" --dbname "${POSTGRES_DB:-${PGDATABASE:-memory}}" <<'END'
\getenv owner FOLDBACK_OWNER_PASSWORD
\getenv writer FOLDBACK_WRITER_PASSWORD
\getenv reader FOLDBACK_READER_PASSWORD
CREATE ROLE foldback_owner LOGIN PASSWORD :'owner';
CREATE ROLE foldback_writer LOGIN PASSWORD :'writer';
CREATE ROLE foldback_reader LOGIN PASSWORD :'reader';
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO foldback_owner;
GRANT USAGE ON SCHEMA public TO foldback_writer, foldback_reader;
END
