/* Paths that hold no model's file: a folder is given in place of a file in it, or a download left nothing. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/str.h"
#include "gguf/gguf_internal.h"

static bool is_model_name(const char *name)
{
    const size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".gguf") == 0 && strncmp(name, "mmproj", 6) != 0;
}

/* The first of the folder's models by name, so that the same one is told each time; false: there is none. */
static bool first_model(const char *folder, struct str *name)
{
    DIR *d = opendir(folder);
    const struct dirent *entry;
    while (d && (entry = readdir(d))) {
        if (!is_model_name(entry->d_name) || (name->n && strcmp(entry->d_name, str_c(name)) > 0)) continue;
        str_clear(name);
        str_puts(name, entry->d_name);
    }
    if (d) closedir(d);
    return name->n > 0;
}

static bool is_checkpoint(const char *folder)
{
    struct str config = {0};
    str_printf(&config, "%s/config.json", folder);
    const bool there = access(str_c(&config), F_OK) == 0;
    str_free(&config);
    return there;
}

static void tell_folder(const char *path, const char *why, struct err *e)
{
    struct str name = {0};
    if (first_model(path, &name))
        err_set(e, ERR_IO, "%s; give a .gguf file in it, such as %s", why, str_c(&name));
    else if (is_checkpoint(path))
        err_set(e, ERR_IO, "%s; it holds a checkpoint: ds4-gguf convert %s -o model.gguf makes a model of it", why,
                path);
    else
        err_set(e, ERR_IO, "%s, and no .gguf file is in it; give the model's .gguf file", why);
    str_free(&name);
}

int gguf_map_path(const char *path, struct file_map **out, struct err *e)
{
    struct err why = {0};
    struct stat st;
    const int rc = file_map_open(path, out, &why);
    const bool there = rc == ERR_IO && stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode))
        tell_folder(path, why.msg, e);
    else if (there && S_ISREG(st.st_mode) && st.st_size == 0)
        err_set(e, rc, "%s: the download did not begin; get it again", why.msg);
    else if (rc)
        err_set(e, rc, "%s", why.msg);
    return rc;
}
