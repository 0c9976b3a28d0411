/* Blocks that one thread copies, and the barriers at which they arrive (PTX ISA, "mbarrier" and "cp.async.bulk.tensor"). They come
 * as late as possible: when a thread waits for them. */
#include "simulator/machine.h"

#include <stdlib.h>

/* Of the phase that has not ended yet: its parity, and whether its arrival has come, which announced bytes. */
typedef struct SimArrival {
    struct SimArrival *next;
    uint32_t offset;
    int32_t phase, bytes;
    int thread;
    bool has_come;
} SimArrival;

enum { BARRIER_BYTES = 8, CHUNK = 16 };

static SimArrival *find(const SimBlock *block, uint32_t offset)
{
    SimArrival *arrival = block->arrivals;
    while (arrival && arrival->offset != offset)
        arrival = arrival->next;
    return arrival;
}

static SimArrival *barrier_at(SimThread *self, uint32_t offset, const SimSite *site)
{
    SimArrival *arrival = find(self->block, offset);
    if (!arrival)
        sim_fail(self, FAILURE_OTHER, site, "%s where no barrier is", site->what);
    return arrival;
}

static void end(SimBlock *block, SimArrival *arrival)
{
    SimArrival **link = &block->arrivals;
    while (*link != arrival)
        link = &(*link)->next;
    *link = arrival->next;
    free(arrival);
}

static void note(SimThread *self, uint32_t offset, bool is_write, const SimSite *site)
{
    OrderAccess access = sim_access_now(self, is_write, site);
    sim_note_shared(self, offset, BARRIER_BYTES, &access);
}

void tt_sim_set_arrivals(SimThread *self, uint32_t offset, int32_t begin, int32_t predicate,
                         const SimSite *site)
{
    SimBlock *block = self->block;
    if (!predicate)
        return;
    note(self, offset, true, site);
    SimArrival *arrival = find(block, offset);
    if (!begin) {
        arrival = barrier_at(self, offset, site);
        if (arrival->has_come)
            sim_fail(self, FAILURE_RACE, site, "a barrier ends before the copies that arrive there");
        end(block, arrival);
        return;
    }
    if (arrival)
        sim_fail(self, FAILURE_OTHER, site, "a barrier begins where one is");
    arrival = calloc(1, sizeof *arrival);
    if (!arrival)
        sim_fail(self, FAILURE_OTHER, site, "out of memory for a barrier");
    *arrival = (SimArrival){.next = block->arrivals, .offset = offset};
    block->arrivals = arrival;
}

void tt_sim_expect(SimThread *self, uint32_t offset, int32_t bytes, int32_t predicate, const SimSite *site)
{
    if (!predicate)
        return;
    SimArrival *arrival = barrier_at(self, offset, site);
    if (arrival->has_come)
        sim_fail(self, FAILURE_RACE, site, "a second arrival at a barrier for one, which nothing waited for");
    arrival->has_come = true;
    arrival->bytes = bytes;
    arrival->thread = self->index;
}

/* What was copied for it lands, and the next phase begins. */
static void end_phase(SimThread *self, SimArrival *arrival, const SimSite *site)
{
    SimBlock *block = self->block;
    int64_t bytes = 0;
    for (SimCopy **link = &block->blocks, *copy; (copy = *link);) {
        if (copy->barrier != arrival->offset) {
            link = &copy->next;
            continue;
        }
        sim_land(&block->threads[arrival->thread], copy);
        bytes += copy->bytes;
        *link = copy->next;
        free(copy);
    }
    block->blocks_end = &block->blocks;
    while (*block->blocks_end)
        block->blocks_end = &(*block->blocks_end)->next;
    if (bytes != arrival->bytes)
        sim_fail(self, FAILURE_OTHER, site, "%lld bytes came to a barrier that expects %d", (long long)bytes,
                 arrival->bytes);
    arrival->has_come = false;
    arrival->phase ^= 1;
}

void tt_sim_await(SimThread *self, uint32_t offset, int32_t phase, const SimSite *site)
{
    SimArrival *arrival;
    while ((arrival = barrier_at(self, offset, site))->phase == phase && !arrival->has_come) {
        self->state = SIM_AT_ARRIVAL;
        self->value = offset;
        self->argument = phase;
        self->site = site;
        sim_yield(self);
    }
    if (arrival->phase == phase)
        end_phase(self, arrival, site);
    note(self, offset, false, site);
}

bool sim_release_arrivals(SimBlock *block)
{
    bool released = false;
    for (int i = 0; i < block->launch->threads; i++) {
        SimThread *thread = &block->threads[i];
        if (thread->state != SIM_AT_ARRIVAL)
            continue;
        const SimArrival *arrival = find(block, (uint32_t)thread->value);
        if (arrival && arrival->phase == thread->argument && !arrival->has_come)
            continue;
        thread->state = SIM_READY;
        released = true;
    }
    return released;
}

static void begin(SimThread *self, SimCopy copy)
{
    SimCopy *begun = sim_begin_copy(self, copy);
    begun->next = NULL;
    *self->block->blocks_end = begun;
    self->block->blocks_end = &begun->next;
}

/* The 16 bytes of a box at `chunk` of a row, of which the last may lie behind the array's columns. */
static void copy_chunk(SimThread *self, uint32_t offset, uint32_t barrier, const SimBlockCopy *block,
                       int64_t row, int64_t chunk, const SimSite *site)
{
    enum { PATTERN = 128 };
    int64_t each = CHUNK / block->element_bytes, column = block->column + chunk * each;
    int64_t at = block->row + row, there = TT_MAX(0, TT_MIN(each, block->columns - column));
    uint32_t place = offset + (uint32_t)(row * block->row_bytes + chunk * CHUNK);
    uint32_t mask = (uint32_t)(block->row_bytes / CHUNK - 1);
    place ^= (place / PATTERN & mask) * CHUNK;
    SimCopy copy = {.address = (uint64_t)(block->base + (at * block->stride + column) * block->element_bytes),
                    .offset = place,
                    .bytes = CHUNK,
                    .barrier = barrier,
                    .is_for_all = true,
                    .site = site};
    if (at >= 0 && at < block->rows && column >= 0)
        copy.source_bytes = (int32_t)(there * block->element_bytes);
    begin(self, copy);
}

void tt_sim_copy_block(SimThread *self, uint32_t offset, uint32_t barrier, const SimBlockCopy *block,
                       int32_t predicate, const SimSite *site)
{
    enum { SHARED_ALIGNMENT = 128 };
    if (!predicate)
        return;
    barrier_at(self, barrier, site);
    if (offset % SHARED_ALIGNMENT || block->base % CHUNK || block->stride * block->element_bytes % CHUNK ||
        block->column * block->element_bytes % CHUNK)
        sim_fail(self, FAILURE_ACCESS, site, "misaligned access");
    for (int64_t row = 0; row < block->box_rows; row++)
        for (int64_t chunk = 0; chunk < block->row_bytes / CHUNK; chunk++)
            copy_chunk(self, offset, barrier, block, row, chunk, site);
}

void sim_check_blocks(SimThread *self)
{
    for (const SimCopy *copy = self->block->blocks; copy && !self->index; copy = copy->next)
        sim_fail(self, FAILURE_RACE, copy->site, "an asynchronous copy that nothing waits for");
}

void sim_free_blocks(SimBlock *block)
{
    while (block->arrivals)
        end(block, block->arrivals);
    for (SimCopy *copy = block->blocks, *next; copy; copy = next) {
        next = copy->next;
        free(copy);
    }
    block->blocks = NULL;
    block->blocks_end = &block->blocks;
}
