// The report begins once it is loaded.

begin();
