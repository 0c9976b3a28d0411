/* Accesses of memory: bounds, alignment, order among the threads, and copies that land late. */
#include "simulator/machine.h"

#include <stdio.h>
#include <stdlib.h>

SimPlace sim_describe(const SimSite *site)
{
    SimPlace place;
    if (site)
        snprintf(place.text, sizeof place.text, "%s (%s:%d)", site->what, site->file, site->line);
    else
        snprintf(place.text, sizeof place.text, "an unnamed access");
    return place;
}

/* ---- order ----------------------------------------------------------------------------------------------------------------- */

/* What a thread did, and where. */
typedef struct Deed {
    const char *verb;
    int thread;
    const SimSite *site;
} Deed;

static void race(SimThread *self, const char *memory, Deed earlier, Deed later, const char *lack)
{
    sim_record_error(
        self->block->launch, FAILURE_RACE,
        "race in %s: %s by thread %d in %s, then %s by thread %d in %s, %s; program (%d, %d, %d)", memory,
        earlier.verb, earlier.thread, sim_describe(earlier.site).text, later.verb, later.thread,
        sim_describe(later.site).text, lack, self->program[0], self->program[1], self->program[2]);
    sim_leave(self);
}

static const char no_barrier[] = "with no barrier between";

static Deed deed_of(bool is_write, int thread, const SimSite *site)
{
    return (Deed){is_write ? "written" : "read", thread, site};
}

static void report_conflict(SimThread *self, const char *memory, const OrderConflict *conflict,
                            const OrderAccess *access)
{
    Deed other = deed_of(conflict->was_write, conflict->thread, conflict->site);
    Deed own = deed_of(access->is_write, access->thread, access->site);
    if (conflict->lack == ORDER_LACKS_WAIT)
        race(self, memory, own, other, "with no wait for the first between");
    race(self, memory, other, own,
         conflict->lack == ORDER_LACKS_FENCE ? "with no fence for tensor cores between" : no_barrier);
}

OrderAccess sim_access_now(const SimThread *self, bool is_write, const SimSite *site)
{
    SimMoment now = sim_moment(self);
    return (OrderAccess){.began = now,
                         .now = now,
                         .thread = self->index,
                         .fences = self->fences,
                         .is_write = is_write,
                         .site = site};
}

/* ---- shared memory --------------------------------------------------------------------------------------------------------- */

static void check_shared_bounds(SimThread *self, uint32_t offset, int32_t bytes, const SimSite *site)
{
    if ((uint64_t)offset + (uint64_t)bytes > (uint64_t)self->block->launch->shared_bytes)
        sim_fail(self, FAILURE_ACCESS, site, "access outside shared memory");
}

void sim_note_shared(SimThread *self, uint32_t offset, int32_t bytes, const OrderAccess *access)
{
    OrderConflict conflict;
    check_shared_bounds(self, offset, bytes, access->site);
    if (tt_order_shared(&self->block->order, offset, bytes, access, &conflict))
        return;
    char memory[64];
    snprintf(memory, sizeof memory, "shared memory at byte %llu", (unsigned long long)conflict.address);
    report_conflict(self, memory, &conflict, access);
}

static OrderAccess access_now(SimThread *self, int32_t access, const SimSite *site)
{
    OrderAccess now = sim_access_now(self, access == SIM_WRITE || access == SIM_ATOMIC, site);
    now.is_atomic = access == SIM_ATOMIC || access == SIM_ATOMIC_READ;
    return now;
}

/* `data`: what a plain store writes, else NULL. */
static void access_shared(SimThread *self, uint32_t offset, int32_t bytes, int32_t access, const char *data,
                          const SimSite *site)
{
    sim_answer_knock(self);
    OrderAccess now = access_now(self, access, site);
    now.data = data;
    now.present = self->shared + offset;
    sim_note_shared(self, offset, bytes, &now);
}

/* ---- global memory --------------------------------------------------------------------------------------------------------- */

/* Of an access through this site; NULL where it may go anywhere, as through a pointer that was loaded. */
static const SimBuffer *buffer_of(const SimLaunch *launch, const SimSite *site)
{
    bool known = site->array >= 0 && site->array < launch->buffer_count;
    return known ? &launch->buffers[site->array] : NULL;
}

static void check_bounds(SimThread *self, uint64_t address, int32_t bytes, const SimSite *site)
{
    const SimBuffer *buffer = buffer_of(self->block->launch, site);
    if (!buffer || (address >= buffer->start && address + (uint64_t)bytes <= buffer->end))
        return;
    uint64_t first =
        address < buffer->start ? address : TT_MAX(address, buffer->end); /* byte that is outside */
    sim_fail(self, FAILURE_ACCESS, site, "%s out of bounds of %s: index %lld, and it has %lld elements",
             site->what, buffer->name, (long long)(first - buffer->start) / buffer->element_bytes,
             (long long)(buffer->end - buffer->start) / buffer->element_bytes);
}

/* Is there a barrier between what this thread did at a moment and what thread 0 does now, or the other way round? */
static bool meets_first_thread(const SimThread *self, SimMoment moment)
{
    SimMoment now = sim_moment(self);
    bool in_its_warp = self->index < SIM_WARP;
    return !self->index || moment.block_epoch < now.block_epoch ||
           (in_its_warp && moment.warp_epoch < now.warp_epoch);
}

void tt_sim_release(SimThread *self, const SimSite *site)
{
    if (!meets_first_thread(self, self->touched))
        race(self, "global memory", (Deed){"used", self->index, self->touched_site},
             (Deed){"released", 0, site}, no_barrier);
}

int64_t tt_sim_clock(SimThread *self)
{
    sim_answer_knock(self);
    return tt_nanoseconds();
}

void tt_sim_acquired(SimThread *self, const SimSite *site)
{
    if (!site)
        return;
    self->acquired = sim_moment(self);
    self->acquired_site = site;
}

static void note_global(SimThread *self, uint64_t address, int32_t bytes, const OrderAccess *access)
{
    OrderConflict conflict;
    if (tt_order_global(&self->block->order, address, bytes, access, &conflict))
        return;
    const SimBuffer *buffer = buffer_of(self->block->launch, access->site);
    char memory[200] = "global memory";
    if (buffer)
        snprintf(memory, sizeof memory, "global memory at byte %llu of %s",
                 (unsigned long long)(conflict.address - buffer->start), buffer->name);
    report_conflict(self, memory, &conflict, access);
}

static void access_global(SimThread *self, uint64_t address, int32_t bytes, int32_t access,
                          const SimSite *site)
{
    sim_answer_knock(self);
    self->site = site;
    check_bounds(self, address, bytes, site);
    if (!meets_first_thread(self, self->acquired))
        race(self, "global memory", (Deed){"acquired", 0, self->acquired_site},
             (Deed){"used", self->index, site}, no_barrier);
    self->touched = sim_moment(self);
    self->touched_site = site;
    OrderAccess now = access_now(self, access, site);
    note_global(self, address, bytes, &now);
}

/* ---- what generated code calls ------------------------------------------------------------------------------------------- */

/* Between the machine's memory and the user's, which may not be there. */
static void copy_user(SimThread *self, void *to, const void *from, int32_t bytes)
{
    self->block->guard.away = false;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    memcpy(to, from, (size_t)bytes);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->block->guard.away = true;
}

/* Vectors of up to 16 bytes must be aligned to their size, as the hardware has it. */
static void check_alignment(SimThread *self, uint64_t address, int32_t bytes, const SimSite *site)
{
    if (address % (uint64_t)bytes)
        sim_fail(self, FAILURE_ACCESS, site, "misaligned access");
}

/* What of it lies in the array, in the dummy. */
static void *read_around(SimThread *self, uint64_t address, int32_t bytes, const SimSite *site)
{
    const SimBuffer *buffer = buffer_of(self->block->launch, site);
    uint64_t start = buffer ? TT_MAX(address, buffer->start) : address;
    uint64_t end = address + (uint64_t)bytes;
    end = buffer ? TT_MIN(end, buffer->end) : end;
    if (start >= end)
        access_global(self, address, bytes, SIM_READ, site); /* which says so */
    sim_answer_knock(self);
    self->site = site;
    memset(self->dummy, 0, sizeof self->dummy);
    copy_user(self, self->dummy + (start - address), (const void *)(uintptr_t)start, (int32_t)(end - start));
    return self->dummy;
}

void *tt_sim_access(SimThread *self, int32_t space, uint64_t address, int32_t bytes, int32_t access,
                    int32_t predicate, const SimSite *site)
{
    if (!predicate)
        return memset(self->dummy, 0, sizeof self->dummy);
    check_alignment(self, address, bytes, site);
    if (space == SIM_SHARED) {
        access_shared(self, (uint32_t)address, bytes, access, NULL, site);
        return self->shared + (uint32_t)address;
    }
    if (access == SIM_READ_AROUND)
        return read_around(self, address, bytes, site);
    access_global(self, address, bytes, access, site);
    return (void *)(uintptr_t)address;
}

void tt_sim_store(SimThread *self, int32_t space, uint64_t address, int32_t bytes, int32_t access,
                  const void *data, int32_t predicate, const SimSite *site)
{
    if (!predicate)
        return;
    check_alignment(self, address, bytes, site);
    char *place = (char *)(uintptr_t)address;
    if (space == SIM_SHARED) {
        access_shared(self, (uint32_t)address, bytes, SIM_WRITE, data, site);
        place = self->shared + (uint32_t)address;
    } else {
        access_global(self, address, bytes, access, site);
    }
    copy_user(self, place, data, bytes);
}

/* ---- asynchronous copies --------------------------------------------------------------------------------------------------- */

/* Where it begins, and where it ends: then with the data. */
static void note_destination(SimThread *self, const SimCopy *copy, const char *data)
{
    OrderAccess write = sim_access_now(self, true, copy->site);
    write.stage = data ? ORDER_ENDS : ORDER_BEGINS;
    write.began = copy->began;
    if (data && copy->is_for_all) /* who waited for it sees it, without a barrier */
        write.now = (SimMoment){write.now.block_epoch - 1, 0};
    write.fences = -1; /* tensor cores see what was waited for */
    write.data = data;
    write.present = self->shared + copy->offset;
    sim_note_shared(self, copy->offset, copy->bytes, &write);
}

static void read_source(SimThread *self, const SimCopy *copy, char data[16])
{
    memset(data, 0, 16);
    if (copy->source_bytes)
        copy_user(self, data, (const void *)(uintptr_t)copy->address, copy->source_bytes);
}

/* With a seed, some copies are seen as soon as they begin. */
static void land_early(SimThread *self, const SimCopy *copy)
{
    char data[16];
    if (!self->block->launch->seed || sim_random(self->block) % 2)
        return;
    read_source(self, copy, data);
    memcpy(self->shared + copy->offset, data, (size_t)copy->bytes);
}

SimCopy *sim_begin_copy(SimThread *self, SimCopy begun)
{
    SimCopy *copy = malloc(sizeof *copy);
    if (!copy)
        sim_fail(self, FAILURE_OTHER, begun.site, "out of memory for an asynchronous copy");
    *copy = begun;
    copy->began = sim_moment(self);
    if (copy->source_bytes)
        access_global(self, copy->address, copy->source_bytes, SIM_READ, copy->site);
    note_destination(self, copy, NULL);
    land_early(self, copy);
    return copy;
}

void tt_sim_copy_async(SimThread *self, uint32_t offset, uint64_t address, int32_t bytes,
                       int32_t source_bytes, const SimSite *site)
{
    if (!bytes)
        return; /* another thread copies it */
    if (bytes != 4 && bytes != 8 && bytes != 16)
        sim_fail(self, FAILURE_OTHER, site, "an asynchronous copy of %d bytes", bytes);
    check_alignment(self, offset, bytes, site);
    if (source_bytes)
        check_alignment(self, address, bytes, site);
    SimCopy *copy = sim_begin_copy(self, (SimCopy){.offset = offset,
                                                   .address = address,
                                                   .bytes = bytes,
                                                   .source_bytes = source_bytes,
                                                   .group = -1,
                                                   .site = site});
    *self->copies_end = copy;
    self->copies_end = &copy->next;
}

void tt_sim_copy_commit(SimThread *self)
{
    for (SimCopy *copy = self->copies; copy; copy = copy->next)
        if (copy->group < 0)
            copy->group = self->open_groups;
    self->open_groups++;
}

static void free_first_copy(SimThread *thread)
{
    SimCopy *copy = thread->copies;
    thread->copies = copy->next;
    if (!thread->copies)
        thread->copies_end = &thread->copies;
    free(copy);
}

/* All of it happens now: what was stored at the source since is a conflict too. */
void sim_land(SimThread *self, const SimCopy *copy)
{
    char data[16];
    OrderAccess read = sim_access_now(self, false, copy->site);
    read.stage = ORDER_ENDS;
    read.began = copy->began;
    note_global(self, copy->address, copy->source_bytes, &read);
    read_source(self, copy, data);
    note_destination(self, copy, data);
    memcpy(self->shared + copy->offset, data, (size_t)copy->bytes);
}

void tt_sim_copy_wait(SimThread *self, int32_t groups_left)
{
    int landed = self->open_groups - groups_left; /* groups below this number must be complete */
    while (self->copies && self->copies->group >= 0 && self->copies->group < landed) {
        sim_land(self, self->copies);
        free_first_copy(self);
    }
}

void tt_sim_fence_proxy(SimThread *self) { self->fences++; }

void sim_free_copies(SimThread *thread)
{
    while (thread->copies)
        free_first_copy(thread);
}

void sim_check_copies(SimThread *self)
{
    if (self->copies)
        sim_fail(self, FAILURE_RACE, self->copies->site, "an asynchronous copy that nothing waits for");
}
