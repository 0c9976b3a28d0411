/* Products of a warpgroup (wgmma): begun by its threads one after the other, carried out where they are waited for.
 *
 * A product in flight is a record of what the threads gave. Its sums are tickets until then: the number of the product
 * and of the register, as a signaling NaN (or two in fp16), which arithmetic neither makes nor lets pass. A later product
 * that is given tickets for its sums goes on from them; the wait puts results in their place. What a program makes of sums
 * that it did not wait for is so wrong every time. Operands in shared memory are read by the wait. */
#include "simulator/machine.h"
#include "simulator/tensor.h"

#include <stdlib.h>

enum {
    ROWS = 64,
    UNIT = 16 /* bytes that lie together */,
    TICKETS = (1 << 15) - 1,
    HALF_TICKETS = (1 << 10) - 1
};

typedef struct SimProduct {
    struct SimProduct *next;
    const SimSite *site;
    uint32_t number, group; /* as the threads count them */
    SimMoment began;
    SimElement a, b;
    SimMajor a_major, b_major;
    int n, arrived, fetched; /* columns; threads that gave their part; words of sums that were waited for */
    bool adds, in_halves, done;
    uint64_t a_matrix, b_matrix;
    struct SimProduct *before; /* not done, to whose sums this one adds; NULL: to those in `sums` */
    uint32_t a_words[SIM_WARPGROUP][4];
    uint32_t sums[]; /* words_of of each thread */
} SimProduct;

static int words_of(const SimProduct *product) { return product->n / (product->in_halves ? 4 : 2); }

static uint32_t *sums_of(SimProduct *product, int thread)
{
    return product->sums + thread * words_of(product);
}

static SimProduct **products_of(const SimThread *self)
{
    return &self->block->products[self->index / SIM_WARPGROUP];
}

static void free_product(SimProduct **list, SimProduct *product)
{
    while (*list != product)
        list = &(*list)->next;
    *list = product->next;
    free(product);
}

/* One that is done is forgotten when all its sums were taken. */
static void note_fetched(const SimThread *self, SimProduct *product, int sums)
{
    product->fetched += sums;
    if (product->fetched >= SIM_WARPGROUP * words_of(product))
        free_product(products_of(self), product);
}

/* ---- tickets --------------------------------------------------------------------------------------------------------------- */

/* Signaling NaNs with no other bits. */
static const uint32_t SINGLE = 0x7f800000, HALVES = 0x7d007d00;

static uint32_t ticket_of(const SimProduct *product, int index)
{
    if (!product->in_halves)
        return SINGLE | (product->number % TICKETS + 1) << 7 | (uint32_t)index;
    uint32_t ticket = (product->number % HALF_TICKETS + 1) << 6 | (uint32_t)index;
    return HALVES | (ticket & 0xff) | ticket >> 8 << 16;
}

/* The product that gave the word as a ticket, for its register `index`. */
static SimProduct *find_ticket(SimProduct *products, uint32_t word, int *index)
{
    bool in_halves = (word & 0xff00ff00u) == HALVES;
    *index = (int)(word & (in_halves ? 63 : 127));
    if (!in_halves && word >> 22 != SINGLE >> 22)
        return NULL;
    while (products && ticket_of(products, *index) != word)
        products = products->next;
    return products && *index < words_of(products) ? products : NULL;
}

/* The product whose sums these are: all of them, in place, or none. */
static SimProduct *product_before(SimThread *self, const SimProduct *product, const uint32_t *sums)
{
    int index;
    SimProduct *products = *products_of(self), *before = find_ticket(products, sums[0], &index);
    for (int i = 0; i < words_of(product); i++)
        if (find_ticket(products, sums[i], &index) != before || (before && index != i))
            sim_fail(self, FAILURE_RACE, product->site, "sums of products in flight, mixed with others");
    if (before && (before->n != product->n || before->in_halves != product->in_halves))
        sim_fail(self, FAILURE_RACE, product->site, "sums of a product in flight of another shape");
    return before;
}

/* ---- matrices in shared memory --------------------------------------------------------------------------------------------- */

/* Descriptor and major-ness of K columns of 32 bytes in all, by `rows`. */
typedef struct Matrix {
    uint32_t start, leading, stride, span;
    SimMajor major;
    SimElement element;
    int rows;
} Matrix;

static Matrix decode_matrix(uint64_t descriptor, SimMajor major, SimElement element, int rows)
{
    static const uint32_t spans[] = {UNIT, 128, 64, 32};
    return (Matrix){.start = (uint32_t)(descriptor & 0x3fff) << 4,
                    .leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                    .stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4,
                    .span = spans[descriptor >> 62],
                    .major = major,
                    .element = element,
                    .rows = rows};
}

/* Whatever lies in bits 7, 8, 9 of an address is added to bits 4, 5, 6: as many as the span asks for. */
static uint32_t swizzle(uint32_t address, uint32_t span)
{
    return address ^ (address >> 3 & (span - 1) & ~(uint32_t)(UNIT - 1));
}

/* Offset in shared memory of the element in a row (of a; a column of b) and at `k`. */
static uint32_t place_of(const Matrix *m, uint32_t row, uint32_t k)
{
    uint32_t bytes = (uint32_t)sim_element_bytes(m->element), unit = UNIT / bytes, across = m->span / bytes,
             offset;
    bool plain = m->span == UNIT;
    if (m->major == SIM_K_MAJOR && plain)
        offset = row % 8 * UNIT + row / 8 * m->stride + k % unit * bytes + k / unit * m->leading;
    else if (m->major == SIM_K_MAJOR)
        offset = row % 8 * m->span + row / 8 * m->stride + k * bytes;
    else if (plain)
        offset = row % unit * bytes + row / unit * m->stride + k % 8 * UNIT + k / 8 * m->leading;
    else
        offset = row % across * bytes + row / across * m->leading + k % 8 * m->span + k / 8 * m->stride;
    return swizzle(m->start + offset, m->span);
}

/* The number'th of 2 * rows units: it begins at the element in *row and at *k. */
static uint32_t unit_of(const Matrix *m, int number, uint32_t *row, uint32_t *k)
{
    uint32_t unit = UNIT / (uint32_t)sim_element_bytes(m->element), depth = 2 * unit, n = (uint32_t)number;
    *row = m->major == SIM_K_MAJOR ? n / 2 : n / depth * unit;
    *k = m->major == SIM_K_MAJOR ? n % 2 * unit : n % depth;
    return place_of(m, *row, *k);
}

static void note_reads(SimThread *self, const Matrix *m, const OrderAccess *access)
{
    uint32_t row, k;
    for (int i = 0; i < 2 * m->rows; i++)
        sim_note_shared(self, unit_of(m, i, &row, &k), UNIT, access);
}

static void decode_rows(const SimThread *self, const Matrix *m, SimRow *rows)
{
    int bytes = sim_element_bytes(m->element);
    for (int i = 0; i < 2 * m->rows; i++) {
        uint32_t row, k;
        const char *unit = self->shared + unit_of(m, i, &row, &k);
        for (int e = 0; e < UNIT / bytes; e++) {
            double value = sim_decode(m->element, unit + (size_t)(e * bytes));
            if (m->major == SIM_K_MAJOR)
                rows[row].at[k + (uint32_t)e] = value;
            else
                rows[row + (uint32_t)e].at[k] = value;
        }
    }
}

static Matrix a_of(const SimProduct *p) { return decode_matrix(p->a_matrix, p->a_major, p->a, ROWS); }
static Matrix b_of(const SimProduct *p) { return decode_matrix(p->b_matrix, p->b_major, p->b, p->n); }

/* Both matrices, at the beginning, when writers must have made a fence, and at the end. */
static void note_operands(SimThread *self, const SimProduct *product, bool begins)
{
    OrderAccess access = sim_access_now(self, false, product->site);
    Matrix a = a_of(product), b = b_of(product);
    access.stage = begins ? ORDER_BEGINS : ORDER_ENDS;
    access.began = product->began;
    access.reach = ORDER_WARPS;
    access.threads = begins ? self->block->threads : NULL;
    if (product->a_major != SIM_IN_REGISTERS)
        note_reads(self, &a, &access);
    note_reads(self, &b, &access);
}

/* ---- beginning ------------------------------------------------------------------------------------------------------------- */

static bool has_shape(SimElement element, int n)
{
    return n >= 8 && n <= 256 && n % 8 == 0 && (element != SIM_I8 || n <= 24 || n % 16 == 0);
}

static void check_product(SimThread *self, const SimProduct *product)
{
    bool transposes = product->a_major == SIM_MN_MAJOR || product->b_major == SIM_MN_MAJOR;
    bool is_wide = product->a == SIM_F16 || product->a == SIM_BF16;
    bool alike = product->a == product->b || (product->a >= SIM_E4M3 && product->b >= SIM_E4M3);
    if (!alike || product->a == SIM_F64 || product->b == SIM_F64 || !has_shape(product->a, product->n) ||
        (transposes && !is_wide) || product->b_major == SIM_IN_REGISTERS)
        sim_fail(self, FAILURE_OTHER, product->site, "wgmma has no such product");
}

static void check_warpgroup(SimThread *self, const SimSite *site)
{
    if (self->index - self->index % SIM_WARPGROUP + SIM_WARPGROUP > self->block->launch->threads)
        sim_fail(self, FAILURE_OTHER, site, "a product of a warpgroup takes four warps");
}

static void check_descriptor(SimThread *self, const SimProduct *product, uint64_t descriptor)
{
    if (descriptor & ~0xc0003fff3fff3fffu)
        sim_fail(self, FAILURE_OTHER, product->site, "a matrix descriptor with other bits than the format's");
}

static SimProduct *new_product(SimThread *self, const SimProduct *shape)
{
    size_t words = SIM_WARPGROUP * (size_t)words_of(shape);
    SimProduct *product = calloc(1, sizeof *product + words * sizeof *product->sums);
    if (!product)
        sim_fail(self, FAILURE_OTHER, shape->site, "out of memory for a product of a warpgroup");
    *product = *shape;
    SimProduct **end = products_of(self);
    while (*end)
        end = &(*end)->next;
    return *end = product;
}

static bool same_product(const SimProduct *a, const SimProduct *b)
{
    return a->site == b->site && a->group == b->group && a->began.block_epoch == b->began.block_epoch &&
           a->n == b->n && a->in_halves == b->in_halves && a->adds == b->adds && a->a_matrix == b->a_matrix &&
           a->b_matrix == b->b_matrix;
}

/* The one that other threads of the warpgroup have begun, or a new one. */
static SimProduct *join(SimThread *self, const SimProduct *shape)
{
    SimProduct *product = *products_of(self);
    while (product && product->number != shape->number)
        product = product->next;
    if (!product)
        return new_product(self, shape);
    if (!same_product(product, shape))
        sim_fail(self, FAILURE_OTHER, shape->site,
                 "the threads of a warpgroup give different descriptors, or do different products");
    return product;
}

/* Registers that were written need a fence; sums of a product before stay as they are. */
static void check_registers(SimThread *self, const SimProduct *product, const SimProduct *before)
{
    if (!self->begins && (!before || product->a_major == SIM_IN_REGISTERS))
        sim_fail(self, FAILURE_RACE, product->site,
                 "a product of a warpgroup without a fence for its registers before");
}

/* What the thread gives to it. */
static void contribute(SimThread *self, SimProduct *product, const SimWgmma *given)
{
    int thread = self->index % SIM_WARPGROUP;
    size_t bytes = sizeof(uint32_t) * (size_t)words_of(product);
    SimProduct *before = product->adds ? product_before(self, product, given->sums) : NULL;
    check_registers(self, product, before);
    memcpy(product->a_words[thread], given->a_words, sizeof given->a_words);
    product->arrived++;
    if (!before || !before->done) {
        memcpy(sums_of(product, thread), given->sums, bytes);
        product->before = before;
        return;
    }
    memcpy(sums_of(product, thread), sums_of(before, thread), bytes);
    note_fetched(self, before, words_of(product));
}

void tt_sim_wgmma_begin(SimThread *self) { self->begins = true; }

void tt_sim_wgmma(SimThread *self, int32_t a, int32_t b, int32_t n, int32_t a_major, int32_t b_major,
                  SimWgmma *given, const SimSite *site)
{
    SimProduct shape = {.site = site,
                        .number = self->products++,
                        .group = self->committed,
                        .began = sim_moment(self),
                        .a = (SimElement)a,
                        .b = (SimElement)b,
                        .a_major = (SimMajor)a_major,
                        .b_major = (SimMajor)b_major,
                        .n = n,
                        .adds = given->adds,
                        .in_halves = given->in_halves,
                        .a_matrix = a_major == SIM_IN_REGISTERS ? 0 : given->a_matrix,
                        .b_matrix = given->b_matrix};
    check_warpgroup(self, site);
    check_product(self, &shape);
    check_descriptor(self, &shape, shape.a_matrix);
    check_descriptor(self, &shape, shape.b_matrix);
    SimProduct *product = join(self, &shape);
    contribute(self, product, given);
    if (product->arrived == SIM_WARPGROUP)
        note_operands(self, product, true);
    for (int i = 0; i < words_of(&shape); i++)
        given->sums[i] = ticket_of(product, i);
}

void tt_sim_wgmma_commit(SimThread *self)
{
    self->begins = false;
    self->committed++;
}

/* ---- the end --------------------------------------------------------------------------------------------------------------- */

static void add_products(SimProduct *product, int thread, const SimRow *rows, const SimRow *columns)
{
    int lane = thread % SIM_WARP, row = thread / SIM_WARP * 16 + lane / 4;
    uint32_t *sums = sums_of(product, thread);
    for (int i = 0; i < words_of(product); i++) {
        int at = product->in_halves ? 2 * i : i;
        const SimRow *own = &rows[row + at / 2 % 2 * 8],
                     *column = &columns[at / 4 * 8 + lane % 4 * 2 + at % 2];
        uint32_t before = product->adds ? sums[i] : 0;
        sums[i] = product->in_halves ? sim_add_to_halves(product->a, before, own, column)
                                     : sim_add_products(product->a, false, before, own, column);
    }
}

static void put_fragments(const SimProduct *product, SimRow *rows)
{
    for (int thread = 0; thread < SIM_WARPGROUP; thread++)
        for (int i = 0; i < 4; i++)
            sim_put_register(product->a, thread % SIM_WARP, i, &product->a_words[thread][i],
                             rows + thread / SIM_WARP * 16);
}

static void carry_out(SimThread *self, SimProduct *product)
{
    note_operands(self, product, false);
    SimRow *rows = malloc((size_t)(ROWS + product->n) * sizeof *rows), *columns = rows + ROWS;
    if (!rows)
        sim_fail(self, FAILURE_OTHER, product->site, "out of memory for a product of a warpgroup");
    Matrix a = a_of(product), b = b_of(product);
    if (product->a_major == SIM_IN_REGISTERS)
        put_fragments(product, rows);
    else
        decode_rows(self, &a, rows);
    decode_rows(self, &b, columns);
    for (int thread = 0; thread < SIM_WARPGROUP; thread++)
        add_products(product, thread, rows, columns);
    free(rows);
    product->done = true;
}

/* The product that adds to this one's sums takes them over: nobody else can have them then. */
static bool hand_over(const SimProduct *product)
{
    bool handed = false;
    for (SimProduct *after = product->next; after; after = after->next)
        if (after->before == product) {
            memcpy(after->sums, product->sums,
                   SIM_WARPGROUP * (size_t)words_of(product) * sizeof *product->sums);
            after->before = NULL;
            handed = true;
        }
    return handed;
}

static void finish(SimThread *self, uint32_t groups)
{
    for (SimProduct *product = *products_of(self), *next; product; product = next) {
        next = product->next;
        if (product->done || product->group >= groups)
            continue;
        if (product->arrived < SIM_WARPGROUP)
            sim_fail(self, FAILURE_OTHER, product->site,
                     "not all threads of the warpgroup take part in a product");
        carry_out(self, product);
        if (hand_over(product))
            free_product(products_of(self), product);
    }
}

/* Results in the place of their tickets. */
static void fetch(SimThread *self, uint32_t *sums, int count)
{
    for (int i = 0, index; i < count; i++) {
        SimProduct *product = find_ticket(*products_of(self), sums[i], &index);
        if (!product || !product->done)
            continue;
        sums[i] = sums_of(product, self->index % SIM_WARPGROUP)[index];
        note_fetched(self, product, 1);
    }
}

void tt_sim_wgmma_wait(SimThread *self, int32_t groups_left, uint32_t *sums, int32_t count,
                       const SimSite *site)
{
    check_warpgroup(self, site);
    self->begins = false;
    if (sim_meet(self, SIM_WARPGROUP, NULL, site) && self->committed > (uint32_t)groups_left)
        finish(self, self->committed - (uint32_t)groups_left);
    fetch(self, sums, count);
}

void sim_free_products(SimBlock *block)
{
    for (int i = 0; i < (int)TT_COUNT(block->products); i++)
        while (block->products[i])
            free_product(&block->products[i], block->products[i]);
}

void sim_check_products(SimThread *self)
{
    for (const SimProduct *product = *products_of(self); product; product = product->next)
        if (!product->done)
            sim_fail(self, FAILURE_RACE, product->site, "a product of a warpgroup that nothing waits for");
}
