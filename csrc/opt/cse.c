/* Merges operations that compute the same: same opcode, operands, attributes, types, and (reduce, scan) same
 * regions. A scope is a region; what an enclosing region computed earlier is visible inside. Loads take part
 * as long as nothing can have been written between them, which a number for the state of memory tells: each
 * write begins a new state, a loop that writes begins one at its head and one behind it, a branch one behind
 * it. */
#include "opt/pass.h"

typedef struct Entry {
    Op *op;
    uint64_t hash;
    int state;
    struct Entry *next;        /* in the bucket */
    struct Entry *made_before; /* in the order of insertion, for leaving a scope */
} Entry;

typedef struct Table {
    Arena *scratch;
    Entry **buckets;
    int shift; /* of a hash, which leaves the number of a bucket: products are mixed well in their high bits */
    Entry *newest;
    int state, states; /* of memory: the present one, and how many there have been */
    bool changed;
} Table;

/* ---- equality ------------------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x9e3779b97f4a7c15u ^ hash >> 29;
}

static uint64_t hash_attr(const Attr *attr)
{
    switch (tt_attr_kinds[attr->key]) {
    case TT_ATTR_INTS:
        return tt_hash_bytes(attr->ints, sizeof(int64_t) * (size_t)attr->count, attr->key);
    case TT_ATTR_STRING:
        return tt_hash_bytes(attr->s, strlen(attr->s), attr->key);
    default:
        return mix(attr->key, (uint64_t)attr->i);
    }
}

/* How long caches should keep what a load reads makes no difference to what it gives. */
static int ignored_attr(const Op *op) { return tt_is_plain_load(op) ? ATTR_evict : -1; }

/* The order of attributes, and of operands that commute, makes no difference. */
static uint64_t hash_op(const Op *op)
{
    uint64_t hash = mix(0x7469, op->opcode), operands = 0, attrs = 0;
    for (int i = 0; i < op->operand_count; i++) {
        uint64_t operand = mix(1, (uintptr_t)tt_operand(op, i));
        operands = tt_has(op, COMMUTES) ? operands + operand : mix(operands, operand);
    }
    for (const Attr *attr = op->attrs; attr; attr = attr->next)
        attrs += (int)attr->key == ignored_attr(op) ? 0 : hash_attr(attr);
    for (int i = 0; i < op->result_count; i++)
        hash = mix(hash, (uintptr_t)op->results[i]->type);
    return mix(mix(hash, operands), attrs);
}

/* `map` leads from values inside the regions of one operation to their counterparts in the other. */
static Value *counterpart(const Map *map, Value *value)
{
    Value *mapped = map ? tt_map_find_ptr(map, value) : NULL;
    return mapped ? mapped : value;
}

static bool same_operands(const Op *a, const Op *b, const Map *map)
{
    bool same = a->operand_count == b->operand_count;
    for (int i = 0; same && i < a->operand_count; i++)
        same = counterpart(map, tt_operand(a, i)) == tt_operand(b, i);
    if (same || !tt_has(a, COMMUTES))
        return same;
    return counterpart(map, tt_operand(a, 0)) == tt_operand(b, 1) &&
           counterpart(map, tt_operand(a, 1)) == tt_operand(b, 0);
}

static bool same_op(const Op *a, const Op *b, Map *map, Arena *scratch);

static bool same_region(const Region *a, const Region *b, Map *map, Arena *scratch)
{
    if (a->arg_count != b->arg_count)
        return false;
    for (int i = 0; i < a->arg_count; i++)
        *tt_map_slot_ptr(map, a->args[i]) = b->args[i];
    const Op *op = a->first, *other = b->first;
    for (; op && other; op = op->next, other = other->next)
        if (!same_op(op, other, map, scratch))
            return false;
    return !op && !other;
}

static bool same_op(const Op *a, const Op *b, Map *map, Arena *scratch)
{
    if (a->opcode != b->opcode || a->result_count != b->result_count || !same_operands(a, b, map) ||
        !tt_same_attrs_but(a, b, ignored_attr(a)))
        return false;
    for (int i = 0; i < a->result_count; i++)
        if (a->results[i]->type != b->results[i]->type || a->results[i]->layout != b->results[i]->layout)
            return false;
    Map inner = {.arena = scratch};
    if (!map)
        map = &inner;
    for (int i = 0; i < a->region_count; i++)
        if (!same_region(a->regions[i], b->regions[i], map, scratch))
            return false;
    for (int i = 0; map != &inner && i < a->result_count; i++)
        *tt_map_slot_ptr(map, a->results[i]) = b->results[i];
    return true;
}

/* ---- the walk ------------------------------------------------------------------------------------------ */

static Op *find_or_insert(Table *table, Op *op)
{
    bool reads = tt_has(op, READS);
    uint64_t hash = hash_op(op);
    Entry **bucket = &table->buckets[hash >> table->shift];
    for (Entry *entry = *bucket; entry; entry = entry->next)
        if (entry->hash == hash && (!reads || entry->state == table->state) &&
            same_op(entry->op, op, NULL, table->scratch))
            return entry->op;
    Entry *entry = TT_NEW(table->scratch, Entry);
    *entry = (Entry){op, hash, table->state, *bucket, table->newest};
    *bucket = table->newest = entry;
    return NULL;
}

/* Entries leave in the opposite order in which they came, so each stands first in its bucket. */
static void leave_scope(Table *table, Entry *newest)
{
    for (; table->newest != newest; table->newest = table->newest->made_before)
        table->buckets[table->newest->hash >> table->shift] = table->newest->next;
}

static void visit_region(Table *table, Region *region);

/* Whether a branch writes is seen when its regions were visited; of branches in one another each would ask all within. */
static void visit_regions(Table *table, Op *op)
{
    bool is_loop = tt_is_loop(op), writes = is_loop && (tt_writes_memory(op) || tt_may_wait(op));
    if (writes)
        table->state = ++table->states;
    int before = table->state, states = table->states;
    for (int i = 0; i < op->region_count; i++) {
        /* Regions of a loop follow one another; those of a branch both begin where it stands. */
        if (!is_loop)
            table->state = before;
        visit_region(table, op->regions[i]);
    }
    if (!is_loop)
        writes = tt_has(op, WRITES) || table->states > states;
    table->state = writes ? ++table->states : before;
}

/* The earlier of two loads of the same says about caches what the later one, which is the last use, said. */
static void take_hint(Op *earlier, const Op *later)
{
    const Attr *hint = tt_find_attr(later, ATTR_evict);
    if (!tt_is_plain_load(earlier) || (!hint && !tt_find_attr(earlier, ATTR_evict)))
        return;
    tt_remove_attr(earlier, ATTR_evict);
    if (hint)
        tt_set_attr(earlier, tt_attr_string(earlier->parent->function->module, ATTR_evict, hint->s, NULL));
}

static void visit_op(Table *table, Op *op)
{
    if (tt_is_pure(op) || tt_is_plain_load(op)) {
        Op *earlier = op->result_count ? find_or_insert(table, op) : NULL;
        if (!earlier) {
            visit_regions(table, op);
            return;
        }
        for (int i = 0; i < op->result_count; i++)
            tt_replace_all_uses(op->results[i], earlier->results[i]);
        take_hint(earlier, op);
        tt_erase_op(op);
        table->changed = true;
    } else if (op->region_count) {
        visit_regions(table, op);
    } else if (tt_has(op, WRITES)) {
        table->state = ++table->states;
    }
}

static void visit_region(Table *table, Region *region)
{
    Entry *newest = table->newest;
    TT_FOR_OPS_SAFE(op, region)
    visit_op(table, op);
    leave_scope(table, newest);
}

static int count_ops(const Region *region)
{
    int count = 0;
    TT_FOR_OPS(op, region)
    {
        count++;
        for (int i = 0; i < op->region_count; i++)
            count += count_ops(op->regions[i]);
    }
    return count;
}

bool tt_opt_cse(Function *function, Arena *scratch)
{
    int64_t buckets = tt_next_pow2(2 * count_ops(function->body) + 2);
    Table table = {.scratch = scratch, .shift = 64 - tt_log2(buckets)};
    table.buckets = TT_NEW_ARRAY(scratch, Entry *, buckets);
    visit_region(&table, function->body);
    return table.changed;
}
