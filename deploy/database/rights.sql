-- What a gateway and a reader may do, once `foldback init` has made the tables. The owner of the tables runs it after each
-- `foldback init`; running it again changes nothing. docs/scaling.md explains it.
GRANT SELECT ON foldback_migration, foldback_store, foldback_tenant TO foldback_writer, foldback_reader;
GRANT SELECT ON foldback_record, foldback_head, foldback_slot TO foldback_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON foldback_record TO foldback_writer;
GRANT SELECT, INSERT, UPDATE ON foldback_head, foldback_slot TO foldback_writer;
GRANT SELECT, INSERT, UPDATE, DELETE ON foldback_commit TO foldback_writer;
