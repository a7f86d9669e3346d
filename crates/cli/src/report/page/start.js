// The report begins once it is loaded.

beginTheme();
begin();
