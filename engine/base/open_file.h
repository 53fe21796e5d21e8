/* open_file.h -- the one place that opens files of a run: links and what is no regular file are refused. */
#ifndef MN_OPEN_FILE_H
#define MN_OPEN_FILE_H

int mn_open_write(const char *path, int flags, int mode);    /* as open() */
int mn_open_read(const char *path);
int mn_open_draft(const char *path, char draft[4096]);
void mn_drop_drafts(const char *path);

#endif
