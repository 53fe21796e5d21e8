"""adapters -- one library a file, imported when it is asked for."""
