/* Linear algebra over F2 on 64-bit masks. Everything is Gaussian elimination that remembers how it was made. */
#include "layout/layout.h"

/* Echelon form: each row has a leading (highest) bit no other row has, and the mask of the inputs it sums. */
typedef struct Echelon {
    uint64_t row[64], inputs[64];
    int count;
} Echelon;

/* Reduces *vector by the rows; *inputs collects which inputs were added. */
static void reduce(const Echelon *echelon, uint64_t *vector, uint64_t *inputs)
{
    for (int i = 0; i < echelon->count; i++) {
        int lead = 63 - __builtin_clzll(echelon->row[i]);
        if (*vector >> lead & 1) {
            *vector ^= echelon->row[i];
            *inputs ^= echelon->inputs[i];
        }
    }
}

/* True when the vector was independent and is now a row. */
static bool insert(Echelon *echelon, uint64_t vector, uint64_t inputs)
{
    reduce(echelon, &vector, &inputs);
    if (!vector)
        return false;
    int lead = 63 - __builtin_clzll(vector);
    for (int i = 0; i < echelon->count; i++)
        if (echelon->row[i] >> lead & 1) {
            echelon->row[i] ^= vector;
            echelon->inputs[i] ^= inputs;
        }
    echelon->row[echelon->count] = vector;
    echelon->inputs[echelon->count++] = inputs;
    return true;
}

static void build(Echelon *echelon, const uint64_t *columns, int count)
{
    echelon->count = 0;
    for (int i = 0; i < count; i++)
        insert(echelon, columns[i], 1ull << i);
}

int tt_f2_rank(const uint64_t *columns, int count)
{
    Echelon echelon;
    build(&echelon, columns, count);
    return echelon.count;
}

bool tt_f2_solve(const uint64_t *columns, int count, uint64_t target, uint64_t *x)
{
    Echelon echelon;
    build(&echelon, columns, count);
    *x = 0;
    reduce(&echelon, &target, x);
    return target == 0;
}

int tt_f2_kernel(const uint64_t *columns, int count, uint64_t *basis)
{
    Echelon echelon = {.count = 0};
    int found = 0;
    for (int i = 0; i < count; i++) {
        uint64_t vector = columns[i], inputs = 1ull << i;
        reduce(&echelon, &vector, &inputs);
        if (!vector)
            basis[found++] = inputs;
        else
            insert(&echelon, columns[i], 1ull << i);
    }
    return found;
}

int tt_f2_basis(const uint64_t *vectors, int count, uint64_t *basis)
{
    Echelon echelon = {.count = 0};
    int found = 0;
    for (int i = 0; i < count; i++)
        if (insert(&echelon, vectors[i], 0))
            basis[found++] = vectors[i];
    return found;
}

int tt_f2_intersection(const uint64_t *a, int a_count, const uint64_t *b, int b_count, uint64_t *basis)
{
    /* A relation between members of a and of b is an element that both spans reach. */
    uint64_t both[64], relations[64], common[64];
    TT_ASSERT(a_count + b_count <= 64);
    for (int i = 0; i < a_count + b_count; i++)
        both[i] = i < a_count ? a[i] : b[i - a_count];
    int count = tt_f2_kernel(both, a_count + b_count, relations);
    uint64_t in_a = a_count == 64 ? ~0ull : (1ull << a_count) - 1;
    for (int i = 0; i < count; i++)
        common[i] = tt_f2_apply(both, relations[i] & in_a);
    return tt_f2_basis(common, count, basis);
}

int tt_f2_extend(const uint64_t *basis, int count, const uint64_t *candidates, int candidate_count, int bits,
                 uint64_t *added)
{
    Echelon echelon;
    build(&echelon, basis, count);
    int found = 0;
    for (int i = 0; i < candidate_count + bits && echelon.count < bits; i++) {
        uint64_t vector = i < candidate_count ? candidates[i] : 1ull << (i - candidate_count);
        if (insert(&echelon, vector, 0))
            added[found++] = vector;
    }
    return found;
}
