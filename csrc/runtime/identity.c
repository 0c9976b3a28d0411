/* See identity.h. */
#define _GNU_SOURCE
#include "runtime/identity.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- this library ------------------------------------------------------------------------------------------------------ */

/* Where it begins in memory: a symbol that linkers define. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

/* Notes are a name and data, each filled up to four bytes. */
static bool hash_build_id(Hasher *hasher, const char *notes, size_t size)
{
    ElfW(Nhdr) note;
    for (size_t at = 0; at + sizeof note <= size;) {
        memcpy(&note, notes + at, sizeof note);
        const char *name = notes + at + sizeof note, *data = name + ((note.n_namesz + 3) & ~3u);
        size_t next = (size_t)(data - notes) + ((note.n_descsz + 3) & ~3u);
        if (next > size)
            return false;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(name, "GNU", 4)) {
            tt_hasher_add(hasher, data, note.n_descsz);
            return note.n_descsz > 0;
        }
        at = next;
    }
    return false;
}

bool tt_hash_compiler(Hasher *hasher)
{
    ElfW(Ehdr) header;
    memcpy(&header, __ehdr_start, sizeof header);
    for (int i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) part;
        memcpy(&part, __ehdr_start + header.e_phoff + (size_t)i * header.e_phentsize, sizeof part);
        if (part.p_type == PT_NOTE && hash_build_id(hasher, __ehdr_start + part.p_vaddr, part.p_memsz))
            return true;
    }
    return false;
}

/* ---- the language -------------------------------------------------------------------------------------------------------- */

typedef struct Files {
    Arena *arena;
    TT_VECTOR(const char *) paths;
} Files;

static void find_files(Files *files, const char *folder)
{
    DIR *open = opendir(folder);
    if (!open)
        return;
    for (const struct dirent *item; (item = readdir(open));) {
        size_t length = strlen(item->d_name);
        const char *path = tt_arena_format(files->arena, "%s/%s", folder, item->d_name);
        if (length > 3 && !strcmp(item->d_name + length - 3, ".py"))
            tt_push(files->arena, files->paths, path);
        else if (item->d_name[0] != '.' && item->d_name[0] != '_' && item->d_type != DT_REG)
            find_files(files, path);
    }
    closedir(open);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool hash_file(Hasher *hasher, const char *path, Arena *arena)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    char *data = fstat(file, &status) ? NULL : tt_arena_alloc(arena, (size_t)status.st_size + 1);
    bool done = data && read(file, data, (size_t)status.st_size) == status.st_size;
    close(file);
    if (done) {
        tt_hasher_add_number(hasher, status.st_size);
        tt_hasher_add(hasher, data, (size_t)status.st_size);
    }
    return done;
}

static bool language_is_known;
static Digest language;
static pthread_once_t language_once = PTHREAD_ONCE_INIT;

static bool hash_files(Hasher *hasher, Arena *arena)
{
    Dl_info library;
    Files files = {.arena = arena};
    if (!dladdr(__ehdr_start, &library) || !strrchr(library.dli_fname, '/'))
        return false;
    int length = (int)(strrchr(library.dli_fname, '/') - library.dli_fname);
    const char *folder = tt_arena_format(arena, "%.*s/language", length, library.dli_fname);
    find_files(&files, folder);
    if (!files.paths.count)
        return false;
    qsort(files.paths.data, (size_t)files.paths.count, sizeof *files.paths.data, compare_paths);
    for (int i = 0; i < files.paths.count; i++) {
        tt_hasher_add_string(hasher, files.paths.data[i] + strlen(folder));
        if (!hash_file(hasher, files.paths.data[i], arena))
            return false;
    }
    return true;
}

static void read_language(void)
{
    Arena arena = {0};
    Hasher hasher;
    Trap trap;
    tt_hasher_init(&hasher);
    if (tt_try(&trap, &arena)) {
        language_is_known = hash_files(&hasher, &arena);
        language = tt_hasher_end(&hasher);
        tt_end_try(&trap);
    }
    tt_arena_release(&arena);
}

bool tt_hash_language(Hasher *hasher)
{
    pthread_once(&language_once, read_language);
    tt_hasher_add(hasher, &language, sizeof language);
    return language_is_known;
}
