/* See store.h. An entry is a file `<kind>/<2 digits of the key>/<the others>`, written elsewhere (`drafts/`) and renamed, so
 * that it is whole whenever it is there. Nothing is synchronised with the disk: a seal tells what a power cut has left.
 * The time of an entry's last use is its modification time, which reading sets once an hour. */
#include "cache/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const int64_t default_limit = (int64_t)1 << 30, largest_entry = (int64_t)1 << 28;
enum { TOUCHED_EVERY = 3600 };

static const char *const kinds[] = {[SEAL_IMAGE] = "kernels", [SEAL_USES] = "sources"};

/* ---- where, and how much ------------------------------------------------------------------------------------------------ */

static const char *set_text(const char *name)
{
    const char *text = tt_variable(name);
    return text && *text ? text : NULL;
}

int64_t tt_store_limit(void)
{
    const char *text = set_text("TRITON_CACHE_SIZE");
    if (!text)
        return default_limit;
    char *end;
    double number = strtod(text, &end);
    int shift = *end == 'k' || *end == 'K'   ? 10
                : *end == 'm' || *end == 'M' ? 20
                : *end == 'g' || *end == 'G' ? 30
                                             : 0;
    bool is_number = end != text && (!*end || (shift && !end[1])) && number >= 0 && number < 1e15;
    return is_number ? (int64_t)(number * (double)((int64_t)1 << shift)) : default_limit;
}

const char *tt_store_folder(Arena *arena)
{
    const char *chosen = set_text("TRITON_CACHE_DIR"), *home = set_text("TRITON_HOME");
    if (chosen)
        return tt_arena_strdup(arena, chosen);
    if (!home)
        home = set_text("HOME");
    return home ? tt_arena_format(arena, "%s/.triton/cache", home) : NULL;
}

const char *tt_store_kind(SealKind kind) { return kind < TT_COUNT(kinds) ? kinds[kind] : NULL; }

static const char *path_of(SealKind kind, const Digest *key, const char *folder, Arena *arena)
{
    char digits[2 * sizeof *key + 1];
    tt_digest_text(key, digits);
    return tt_arena_format(arena, "%s/%s/%.2s/%s", folder, kinds[kind], digits, digits + 2);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------ */

/* Written by whom one trusts, and by nobody else since. */
static bool is_trusted(const struct stat *status)
{
    bool own = status->st_uid == geteuid() || status->st_uid == 0;
    return S_ISREG(status->st_mode) && own && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

static void touch(int file, const struct stat *status)
{
    time_t age = time(NULL) - status->st_mtime;
    if (age > TOUCHED_EVERY || age < -TOUCHED_EVERY) /* a clock may have been wrong */
        futimens(file, NULL);
}

static Bytes read_open(int file, Arena *arena)
{
    struct stat status;
    if (fstat(file, &status) || !is_trusted(&status) || status.st_size > largest_entry)
        return (Bytes){0};
    size_t size = (size_t)status.st_size, done = 0;
    char *data = tt_arena_alloc(arena, size + 1);
    while (done < size) {
        ssize_t part = read(file, data + done, size - done);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return (Bytes){0};
        done += (size_t)part;
    }
    touch(file, &status);
    return (Bytes){data, size};
}

Bytes tt_store_read(SealKind kind, const Digest *key, Arena *arena)
{
    static atomic_bool cleaned;
    const char *folder = tt_store_limit() ? tt_store_folder(arena) : NULL;
    if (!folder)
        return (Bytes){0};
    if (!atomic_exchange(&cleaned, true))
        tt_store_sweep(folder, INT64_MAX);
    /* What is no file (a pipe, say) must not make anyone wait. */
    int file = open(path_of(kind, key, folder, arena), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return (Bytes){0};
    Bytes bytes = read_open(file, arena);
    close(file);
    return bytes;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------ */

/* Makes the folders on the way to a file. */
static void make_folders(const char *path, Arena *arena)
{
    char *copy = tt_arena_strdup(arena, path);
    for (char *slash = copy; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        mkdir(copy, 0777);
        *slash = '/';
    }
}

static bool write_all(int file, Bytes bytes)
{
    for (size_t done = 0; done < bytes.size;) {
        ssize_t part = write(file, (const char *)bytes.data + done, bytes.size - done);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return false;
        done += (size_t)part;
    }
    return true;
}

/* Opens a file for writing whose folders may not be there yet. */
static int create(const char *path, Arena *arena)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW };
    int file = open(path, FLAGS, 0644);
    if (file < 0 && errno == ENOENT) {
        make_folders(path, arena);
        file = open(path, FLAGS, 0644);
    }
    return file;
}

static bool move(const char *from, const char *to, Arena *arena)
{
    if (!rename(from, to))
        return true;
    if (errno != ENOENT)
        return false;
    make_folders(to, arena);
    return !rename(from, to);
}

/* Each process sweeps when it first writes, and whenever it has written a sixteenth of the limit since. */
static void sweep_now_and_then(const char *folder, size_t written)
{
    static atomic_llong until_sweep;
    long long left = atomic_fetch_sub(&until_sweep, (long long)written);
    if (left > (long long)written)
        return;
    int64_t limit = tt_store_limit();
    atomic_store(&until_sweep, limit / 16);
    tt_store_sweep(folder, limit);
}

static bool write_entry(const char *folder, SealKind kind, const Digest *key, Bytes sealed, Arena *arena)
{
    static atomic_uint number;
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    const char *path = path_of(kind, key, folder, arena);
    const char *draft = tt_arena_format(arena, "%s/drafts/%ld-%u-%s", folder, (long)getpid(),
                                        atomic_fetch_add(&number, 1), host);
    int file = create(draft, arena);
    if (file < 0)
        return false;
    fchmod(file, 0644); /* whatever the process's mask is, no one else writes */
    bool done = write_all(file, sealed);
    done &= !close(file);
    done = done && move(draft, path, arena);
    if (!done)
        unlink(draft);
    return done;
}

void tt_store_write(SealKind kind, const Digest *key, Bytes sealed, Arena *arena)
{
    const char *folder = tt_store_limit() ? tt_store_folder(arena) : NULL;
    if (folder && (int64_t)sealed.size <= largest_entry && write_entry(folder, kind, key, sealed, arena))
        sweep_now_and_then(folder, sealed.size);
}

bool tt_store_add(const char *folder, Bytes sealed, Arena *arena)
{
    SealKind kind;
    Digest key;
    return tt_read_seal(sealed, &kind, &key) && tt_store_kind(kind) &&
           write_entry(folder, kind, &key, sealed, arena);
}
