/* Atomics. Each element is updated by one thread; when others hold copies of it and the old values are used, they get
 * them by shuffles or through scratch. What the hardware has no instruction for becomes a compare-and-swap loop. A
 * thread that updates several elements orders all of them at once, by fences around relaxed updates: an order costs
 * as much as waiting for all of a thread's writes. */
#include "gpu/simt_vectors.h"
#include <math.h>

/* ---- copies ------------------------------------------------------------------------------------------------------------------------- */

/* Warp bits in which the value is copied: the threads that act are those with none of them set. */
static uint32_t copied_warps(Simt *s, const LinearLayout *layout)
{
    return layout ? tt_layout_replication(layout, LAYOUT_WARP) : (uint32_t)s->options->num_warps - 1;
}

static uint32_t copied_lanes(const LinearLayout *layout)
{
    return layout ? tt_layout_replication(layout, LAYOUT_LANE) : TT_LANES - 1;
}

static void share_through_memory(Simt *s, const Op *op, Tile *tile)
{
    const LinearLayout *layout = op->results[0]->layout;
    LLVMValueRef first = simt_is_first_copy(s, layout), place = simt_i32(s, 0);
    uint64_t none[1] = {0}, *columns = none;
    int bytes = tt_byte_width(op->results[0]->type), count = 0;
    int64_t scratch = tt_scratch_offset(op), constant = 0;
    LinearLayout copy;
    if (layout) {
        copy = *layout;
        columns = copy.bases + copy.in_bits[LAYOUT_REGISTER];
        count = copy.in_bits[LAYOUT_LANE] + copy.in_bits[LAYOUT_WARP];
        place = simt_thread_offset(s, columns, copy.in_bits[LAYOUT_LANE], copy.in_bits[LAYOUT_WARP], bytes);
    }
    for (int store = 1; store >= 0; store--) {
        for (int r = 0; r < tile->count; r++) {
            LLVMValueRef address = place;
            uint64_t element = layout ? tt_f2_apply(layout->bases, (uint64_t)r) : 0;
            simt_add_offset(s, columns, count, place, element, bytes, &address, &constant);
            if (store)
                simt_shared_store(s, address, scratch + constant, tile->at[r], first);
            else
                tile->at[r] = simt_shared_load(s, address, scratch + constant, LLVMTypeOf(tile->at[r]));
        }
        if (store)
            simt_sync(s);
    }
}

/* Gives the threads that hold copies what the acting ones got. */
static void share_results(Simt *s, const Op *op, Tile *tile)
{
    const LinearLayout *layout = op->results[0]->layout;
    uint32_t lanes = copied_lanes(layout);
    if (copied_warps(s, layout)) {
        share_through_memory(s, op, tile);
    } else if (lanes) {
        LLVMValueRef acting = LLVMBuildAnd(s->b, s->lane, simt_i32(s, (TT_LANES - 1) & ~(int)lanes), "");
        for (int r = 0; r < tile->count; r++)
            tile->at[r] = simt_shuffle_index(s, tile->at[r], acting);
    }
}

/* ---- one element -------------------------------------------------------------------------------------------------------------------- */

enum { UPDATE_FMAX = ATOMIC_KINDS, UPDATE_FMIN };

static int find_kind(const Op *op)
{
    static const struct {
        const char *name;
        int kind;
    } kinds[] = {{"add", ATOMIC_ADD},   {"fadd", ATOMIC_FADD},   {"min", ATOMIC_MIN_S},
                 {"max", ATOMIC_MAX_S}, {"min_u", ATOMIC_MIN_U}, {"max_u", ATOMIC_MAX_U},
                 {"and", ATOMIC_AND},   {"or", ATOMIC_OR},       {"xor", ATOMIC_XOR},
                 {"xchg", ATOMIC_XCHG}, {"fmax", UPDATE_FMAX},   {"fmin", UPDATE_FMIN},
                 {"load", ATOMIC_LOAD}, {"store", ATOMIC_STORE}};
    if (op->opcode == OP_atomic_cas)
        return ATOMIC_CAS;
    const char *name = tt_string_attr(op, ATTR_kind, "");
    for (size_t i = 0; i < TT_COUNT(kinds); i++)
        if (!strcmp(kinds[i].name, name))
            return kinds[i].kind;
    tt_unsupported(op->loc, "the atomic operation '%s'", name);
}

/* The new value of an element, for a compare-and-swap loop. */
static LLVMValueRef updated(Simt *s, int kind, const Type *type, LLVMValueRef old, LLVMValueRef operand)
{
    const Type *wide =
        tt_is_float(type) && tt_bit_width(type) < 32 ? tt_scalar_type(s->module, TT_F32) : type;
    LLVMValueRef a, b, better;
    switch (kind) {
    case ATOMIC_ADD:
        return LLVMBuildAdd(s->b, old, operand, "");
    case ATOMIC_MIN_S:
        return simt_intrinsic2(s, "llvm.smin", old, operand);
    case ATOMIC_MAX_S:
        return simt_intrinsic2(s, "llvm.smax", old, operand);
    case ATOMIC_MIN_U:
        return simt_intrinsic2(s, "llvm.umin", old, operand);
    case ATOMIC_MAX_U:
        return simt_intrinsic2(s, "llvm.umax", old, operand);
    case ATOMIC_AND:
        return LLVMBuildAnd(s->b, old, operand, "");
    case ATOMIC_OR:
        return LLVMBuildOr(s->b, old, operand, "");
    case ATOMIC_XOR:
        return LLVMBuildXor(s->b, old, operand, "");
    case ATOMIC_XCHG:
        return operand;
    }
    a = simt_cast_scalar(s, old, type, wide);
    b = simt_cast_scalar(s, operand, type, wide);
    if (kind == ATOMIC_FADD)
        return simt_cast_scalar(s, LLVMBuildFAdd(s->b, a, b, ""), wide, type);
    better = LLVMBuildFCmp(s->b, kind == UPDATE_FMAX ? LLVMRealOGT : LLVMRealOLT, b, a, "");
    better = LLVMBuildOr(s->b, better, LLVMBuildFCmp(s->b, LLVMRealUNO, a, a, ""), ""); /* a NaN loses */
    return LLVMBuildSelect(s->b, better, operand, old, "");
}

/* A word that holds the element: itself, or of bytes the aligned 32 bits around it. */
typedef struct Word {
    Access access;
    TypeKind type;
    LLVMTypeRef llvm;
    LLVMValueRef shift; /* of the element in it; NULL: it is the word */
} Word;

static Word word_of(Simt *s, const Access *access, int bytes)
{
    Word word = {.access = *access};
    word.type = bytes == 8 ? TT_I64 : bytes == 2 ? TT_I16 : TT_I32;
    word.llvm = simt_int_type(s, bytes == 1 ? 32 : 8 * bytes);
    if (bytes == 1) {
        LLVMValueRef pointer = simt_addptr(s, access->address, simt_int(s->i64, access->offset), 1);
        LLVMValueRef address = LLVMBuildPtrToInt(s->b, pointer, s->i64, "");
        LLVMValueRef low = LLVMBuildTrunc(s->b, address, s->i32, "");
        low = LLVMBuildAnd(s->b, low, simt_i32(s, 3), "");
        word.shift = LLVMBuildShl(s->b, low, simt_i32(s, 3), "");
        address = LLVMBuildAnd(s->b, address, simt_int(s->i64, ~3ll), "");
        word.access.address = LLVMBuildIntToPtr(s->b, address, s->global_ptr, "");
        word.access.offset = 0;
        simt_set_words(&word.access, 4);
    }
    return word;
}

static LLVMValueRef element_of_word(Simt *s, const Word *word, LLVMValueRef bits, LLVMTypeRef type)
{
    if (word->shift)
        bits = LLVMBuildTrunc(s->b, LLVMBuildLShr(s->b, bits, word->shift, ""), s->i8, "");
    return simt_from_bits(s, bits, type);
}

static LLVMValueRef word_with(Simt *s, const Word *word, LLVMValueRef bits, LLVMValueRef element)
{
    LLVMValueRef value = simt_to_bits(s, element);
    if (!word->shift)
        return value;
    LLVMValueRef mask = LLVMBuildShl(s->b, simt_i32(s, 0xff), word->shift, "");
    LLVMValueRef rest = LLVMBuildAnd(s->b, bits, LLVMBuildNot(s->b, mask, ""), "");
    return LLVMBuildOr(s->b, rest,
                       LLVMBuildShl(s->b, LLVMBuildZExt(s->b, value, s->i32, ""), word->shift, ""), "");
}

/* do { expected = found; found = cas(expected, update(expected)) } while (found != expected), where the predicate
 * holds. For ATOMIC_CAS of a byte, stops as well when the element is not what it is compared with. */
static LLVMValueRef swap_loop(Simt *s, int kind, const Atomic *atomic, const Type *type)
{
    Word word = word_of(s, &atomic->access, tt_byte_width(type));
    LLVMTypeRef llvm = simt_type(s, type);
    LLVMValueRef zero = LLVMConstNull(word.llvm);
    LLVMBasicBlockRef enter = simt_new_block(s, "swap"), body = simt_new_block(s, "try"),
                      done = simt_new_block(s, "");
    LLVMBasicBlockRef before = LLVMGetInsertBlock(s->b);
    if (atomic->access.predicate)
        LLVMBuildCondBr(s->b, atomic->access.predicate, enter, done);
    else
        LLVMBuildBr(s->b, enter);
    LLVMPositionBuilderAtEnd(s->b, enter);
    word.access.predicate = NULL;
    Atomic guess = {.kind = ATOMIC_LOAD,
                    .access = word.access,
                    .type = word.type,
                    .sem = "relaxed",
                    .scope = atomic->scope,
                    .value = zero};
    LLVMValueRef first = s->ops->atomic(s, &guess);
    LLVMBuildBr(s->b, body);
    LLVMPositionBuilderAtEnd(s->b, body);
    LLVMValueRef expected = LLVMBuildPhi(s->b, word.llvm, "");
    LLVMValueRef old = element_of_word(s, &word, expected, llvm), fresh, finished = NULL;
    if (kind == ATOMIC_CAS) {
        fresh = atomic->value;
        finished = LLVMBuildICmp(s->b, LLVMIntNE, simt_to_bits(s, old), simt_to_bits(s, atomic->compare), "");
        fresh = LLVMBuildSelect(s->b, finished, old, fresh, "");
    } else {
        fresh = updated(s, kind, type, old, atomic->value);
    }
    Atomic swap = {.kind = ATOMIC_CAS,
                   .access = word.access,
                   .type = word.type,
                   .sem = atomic->sem,
                   .scope = atomic->scope,
                   .compare = expected};
    swap.value = word_with(s, &word, expected, fresh);
    LLVMValueRef found = s->ops->atomic(s, &swap);
    LLVMBasicBlockRef end = LLVMGetInsertBlock(s->b);
    LLVMBuildCondBr(s->b, LLVMBuildICmp(s->b, LLVMIntEQ, found, expected, ""), done, body);
    LLVMAddIncoming(expected, (LLVMValueRef[]){first, found}, (LLVMBasicBlockRef[]){enter, end}, 2);
    LLVMPositionBuilderAtEnd(s->b, done);
    LLVMValueRef result = LLVMBuildPhi(s->b, word.llvm, "");
    LLVMAddIncoming(result, &expected, &end, 1);
    if (atomic->access.predicate)
        LLVMAddIncoming(result, &zero, &before, 1);
    return element_of_word(s, &word, result, llvm);
}

/* Maximum or minimum of f32 or f64 by their bits: those of non-negative numbers are ordered like signed integers, those
 * of negative ones the other way round like unsigned. A NaN operand changes nothing; a NaN in memory stays. */
static LLVMValueRef float_extreme(Simt *s, int kind, const Atomic *atomic, const Type *type)
{
    LLVMTypeRef llvm = simt_type(s, type);
    bool is_max = kind == UPDATE_FMAX;
    LLVMValueRef value = atomic->value, nan = LLVMBuildFCmp(s->b, LLVMRealUNO, value, value, "");
    value = LLVMBuildSelect(s->b, nan, LLVMConstReal(llvm, is_max ? -INFINITY : INFINITY), value, "");
    LLVMValueRef bits = simt_to_bits(s, value);
    LLVMValueRef negative = LLVMBuildICmp(s->b, LLVMIntSLT, bits, LLVMConstNull(LLVMTypeOf(bits)), ""),
                 old[2];
    for (int i = 0; i < 2; i++) {
        Atomic one = *atomic;
        one.type = type->kind == TT_F64 ? TT_I64 : TT_I32;
        one.kind = i ? (is_max ? ATOMIC_MIN_U : ATOMIC_MAX_U) : (is_max ? ATOMIC_MAX_S : ATOMIC_MIN_S);
        one.value = bits;
        LLVMValueRef applies = i ? negative : LLVMBuildNot(s->b, negative, "");
        one.access.predicate = simt_and(s, atomic->access.predicate, applies);
        old[i] = s->ops->atomic(s, &one);
    }
    if (atomic->result_unused)
        return NULL;
    return simt_from_bits(s, LLVMBuildSelect(s->b, negative, old[1], old[0], ""), llvm);
}

static LLVMValueRef update_element(Simt *s, const Op *op, Atomic *atomic)
{
    const Type *type = tt_element(op->results[0]->type);
    int kind = find_kind(op);
    if (kind >= ATOMIC_KINDS && tt_bit_width(type) >= 32)
        return float_extreme(s, kind, atomic, type);
    bool one_way = kind == ATOMIC_LOAD || kind == ATOMIC_STORE;
    if (kind >= ATOMIC_KINDS || (!one_way && !s->ops->has_atomic(s, (AtomicKind)kind, type->kind)))
        return swap_loop(s, kind, atomic, type);
    atomic->kind = (AtomicKind)kind;
    return s->ops->atomic(s, atomic);
}

/* ---- the tile ----------------------------------------------------------------------------------------------------------------------- */

typedef struct Update {
    const Op *op;
    Atomic atomic; /* what all elements have in common */
    Vectors vectors;
    Masks masks;
    const Tile *pointers, *values, *replacements; /* replacements: of atomic_cas */
    Tile *old;
} Update;

static void point_at(Update *u, Atomic *atomic, int reg, int bytes)
{
    *atomic = u->atomic;
    atomic->access.offset = simt_peel_pointer(u->pointers->at[reg], &atomic->access.address);
    simt_set_words(&atomic->access, bytes);
}

static void update_one(Simt *s, Update *u, int reg, LLVMValueRef predicate)
{
    Atomic atomic;
    point_at(u, &atomic, reg, tt_byte_width(u->op->results[0]->type));
    atomic.access.predicate = simt_and(s, predicate, u->masks.first_copy);
    atomic.value = u->replacements ? u->replacements->at[reg] : u->values->at[reg];
    atomic.compare = u->replacements ? u->values->at[reg] : NULL;
    u->old->at[reg] = update_element(s, u->op, &atomic);
}

static void add_to_vector(Simt *s, Update *u, int first)
{
    int count = 1 << u->vectors.count_bits;
    LLVMValueRef single[LONGEST_VECTOR], values[LONGEST_VECTOR];
    LLVMValueRef whole = simt_vector_masks(s, &u->masks, &u->vectors, first, single);
    if (count == 1) {
        update_one(s, u, first, whole);
        return;
    }
    for (int i = 0; i < count; i++)
        values[i] = u->values->at[simt_vector_register(&u->vectors, first, i)];
    Atomic atomic;
    point_at(u, &atomic, first, count * tt_byte_width(u->op->results[0]->type));
    atomic.access.predicate = simt_and(s, whole, u->masks.first_copy);
    s->ops->add_vector(s, &atomic, values, count);
    for (int i = 0; i < count && single[0]; i++)
        update_one(s, u, simt_vector_register(&u->vectors, first, i), single[i]);
}

/* An order for many updates is given by fences in front and behind. So is that of a vector, whose instruction has no
 * result: one without a result cannot acquire. */
static bool takes_fences(const Update *u, int updates)
{
    return (updates > 1 || u->vectors.count_bits) && strcmp(u->atomic.sem, "relaxed");
}

static void update_tile(Simt *s, Update *u, const LinearLayout *layout)
{
    int updates = 0, count = u->pointers->count;
    int *firsts = TT_NEW_ARRAY(s->arena, int, count);
    for (int r = 0; r < count; r++)
        if (!((uint32_t)r & u->vectors.mask) && !(layout && simt_is_register_copy(layout, r)))
            firsts[updates++] = r;
    const char *sem = u->atomic.sem;
    bool fences = takes_fences(u, updates);
    if (fences && strcmp(sem, "acquire"))
        s->ops->fence(s, u->atomic.scope);
    if (fences)
        u->atomic.sem = "relaxed";
    /* Otherwise the order stands at the instruction that readers look for, `atom`, whose result the assembler drops; behind
     * a fence it would not. */
    u->atomic.result_unused &= fences || u->vectors.count_bits;
    for (int i = 0; i < updates; i++)
        add_to_vector(s, u, firsts[i]);
    if (fences && strcmp(sem, "release"))
        s->ops->fence(s, u->atomic.scope);
}

void simt_atomic(Simt *s, const Op *op)
{
    const Value *pointer = tt_operand(op, 0), *result = op->results[0];
    const LinearLayout *layout = pointer->layout;
    TypeKind type = tt_element(result->type)->kind;
    bool swaps = op->opcode == OP_atomic_cas, used = tt_has_uses(result);
    Update u = {.op = op, .pointers = simt_tile(s, pointer), .values = simt_tile(s, tt_operand(op, 1))};
    u.masks = simt_masks_of(s, op, swaps ? 3 : 2, layout);
    u.masks.first_copy = simt_is_first_copy(s, layout);
    u.replacements = swaps ? simt_tile(s, tt_operand(op, 2)) : NULL;
    u.atomic = (Atomic){.type = type,
                        .access.space = GLOBAL_MEMORY,
                        .sem = tt_string_attr(op, ATTR_sem, "acq_rel"),
                        .scope = tt_string_attr(op, ATTR_scope, "gpu"),
                        .result_unused = !used};
    if (layout && !used && !swaps && find_kind(op) == ATOMIC_FADD) {
        u.atomic.kind = ATOMIC_FADD;
        int widest = s->ops->widest_addition(s, type);
        u.vectors = simt_plan_vectors(s, op, layout, tt_byte_width(result->type), widest);
    }
    Tile *tile = u.old = simt_new_tile(s, u.pointers->count);
    if (tt_releases(op) && s->ops->releases)
        s->ops->releases(s);
    update_tile(s, &u, layout);
    if (tt_acquires(op) && s->ops->acquired)
        s->ops->acquired(s);
    if (!used)
        return;
    for (int r = 0; r < tile->count; r++)
        if (!tile->at[r])
            tile->at[r] = tile->at[tt_register_of(layout, tt_f2_apply(layout->bases, (uint64_t)r))];
    share_results(s, op, tile);
    simt_set(s, result, tile);
}

/* Threads that looked for themselves would see different times, and go different ways. */
void simt_clock(Simt *s, const Op *op)
{
    Tile *tile = simt_new_tile(s, 1);
    tile->at[0] = s->ops->clock(s);
    if (tt_has_uses(op->results[0]))
        share_results(s, op, tile);
    simt_set(s, op->results[0], tile);
}
