/* Keeping the store small: see store.h. Any number of processes may sweep at once, while others read and write: a file
 * that goes while it is open stays readable, and one that another sweeper took first is gone either way. */
#include "cache/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct Entry {
    const char *path;
    int64_t size;
    time_t used;
} Entry;

typedef struct Sweep {
    Arena *arena;
    time_t now;
    int64_t total;
    TT_VECTOR(Entry) entries;
} Sweep;

/* A folder may hold what is not the store's: only names that it gives are its own. */
static void note(Sweep *sweep, const char *path)
{
    enum { DIGITS = 2 * sizeof(Digest) - 2 };
    struct stat status;
    const char *name = strrchr(path, '/') + 1;
    bool is_own = strspn(name, "0123456789abcdef") == DIGITS && !name[DIGITS];
    if (!is_own || lstat(path, &status) || !S_ISREG(status.st_mode))
        return;
    time_t used = TT_MIN(status.st_mtime, sweep->now); /* a clock may have been wrong */
    Entry entry = {path, (int64_t)status.st_blocks * 512, used};
    sweep->total += entry.size;
    tt_push(sweep->arena, sweep->entries, entry);
}

/* `visit` gets the path of everything in the folder. */
static void for_each(Sweep *sweep, const char *folder, void (*visit)(Sweep *sweep, const char *path))
{
    DIR *open = opendir(folder);
    if (!open)
        return;
    for (const struct dirent *item; (item = readdir(open));)
        if (item->d_name[0] != '.')
            visit(sweep, tt_arena_format(sweep->arena, "%s/%s", folder, item->d_name));
    closedir(open);
}

static void note_shard(Sweep *sweep, const char *folder) { for_each(sweep, folder, note); }

static int compare_use(const void *left, const void *right)
{
    const Entry *a = left, *b = right;
    if (a->used != b->used)
        return a->used < b->used ? -1 : 1;
    return strcmp(a->path, b->path);
}

/* A draft is left over if its writer is no more, as far as one can tell on this machine, or has had a day for it. */
static void remove_draft(Sweep *sweep, const char *path)
{
    enum { DAY = 86400 };
    char host[64] = "";
    struct stat status;
    gethostname(host, sizeof host - 1);
    const char *name = strrchr(path, '/') + 1, *writer = strchr(name, '-');
    writer = writer ? strchr(writer + 1, '-') : NULL;
    long process = strtol(name, NULL, 10);
    if (!writer || process <= 0)
        return;
    bool is_here = !strcmp(writer + 1, host);
    bool has_ended = is_here && kill((pid_t)process, 0) && errno == ESRCH;
    if (lstat(path, &status) || !S_ISREG(status.st_mode))
        return;
    time_t age = sweep->now - status.st_mtime;
    if (has_ended || age > DAY || age < -DAY)
        unlink(path);
}

static void clean(Sweep *sweep, const char *folder)
{
    for_each(sweep, tt_arena_format(sweep->arena, "%s/drafts", folder), remove_draft);
}

static void shrink(Sweep *sweep, int64_t limit)
{
    qsort(sweep->entries.data, (size_t)sweep->entries.count, sizeof *sweep->entries.data, compare_use);
    int64_t wanted = limit - limit / 8; /* so that the next write does not have to do it again */
    for (int i = 0; i < sweep->entries.count && sweep->total > wanted; i++) {
        unlink(sweep->entries.data[i].path);
        sweep->total -= sweep->entries.data[i].size;
    }
}

void tt_store_sweep(const char *folder, int64_t limit)
{
    Arena arena = {0};
    Trap trap;
    if (tt_try(&trap, &arena)) { /* without memory, another time */
        Sweep sweep = {.arena = &arena, .now = time(NULL)};
        clean(&sweep, folder);
        if (limit < INT64_MAX) {
            for_each(&sweep, tt_arena_format(&arena, "%s/kernels", folder), note_shard);
            for_each(&sweep, tt_arena_format(&arena, "%s/sources", folder), note_shard);
        }
        if (sweep.total > limit)
            shrink(&sweep, limit);
        tt_end_try(&trap);
    }
    tt_arena_release(&arena);
}
