/* Files and folders of tests, below /tmp. What is left of them is removed when the program ends, also after a failed
 * test; a killed program leaves them behind. */
#ifndef TEMP_FILES_H
#define TEMP_FILES_H

enum { TEMP_PATH = 64 };

/* Makes an empty file. Ends the program if it cannot, as does temp_folder. */
void temp_file(char path[TEMP_PATH]);
void temp_folder(char path[TEMP_PATH]);
/* Writes a text file folder/path, replacing what is there, and makes the folders above it. */
void temp_put(const char *folder, const char *path, const char *text);
/* Removes one of them with all that is in it, before the program's end. 0, or -1: it was not whole any more. */
int temp_remove(const char *path);

#endif
