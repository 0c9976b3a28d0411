/* Loads and stores: registers that hold neighbours are accessed as one vector of up to 16 bytes. A mask becomes a
 * predicate. Where the mask may cut a vector, the vector is accessed under the conjunction of its masks, and each
 * element under its own mask where that does not hold: full speed inside, right at the edge. Loads of such elements
 * stand in one branch for the whole operation, or they would have to wait for the vectors whose registers they fill. */
#include "gpu/simt.h"

/* ---- elements as words ----------------------------------------------------------------------------------------------------------- */

void simt_set_words(Access *access, int bytes)
{
    access->word_bits = bytes % 4 ? 8 * bytes : 32; /* 1 or 2 bytes, or words of 4 */
    access->words = 8 * bytes / access->word_bits;
}

static LLVMTypeRef vector_of(LLVMTypeRef element, int count)
{
    return count == 1 ? element : LLVMVectorType(element, (unsigned)count);
}

static LLVMValueRef insert(Simt *s, LLVMValueRef vector, LLVMValueRef element, int at, int count)
{
    return count == 1 ? element : LLVMBuildInsertElement(s->b, vector, element, simt_i32(s, at), "");
}

static LLVMValueRef extract(Simt *s, LLVMValueRef vector, int at, int count)
{
    return count == 1 ? vector : LLVMBuildExtractElement(s->b, vector, simt_i32(s, at), "");
}

/* i1 and pointers, which no vector of words can be cast to, as integers. */
static LLVMValueRef storable(Simt *s, LLVMValueRef element)
{
    LLVMTypeRef type = LLVMTypeOf(element);
    return type == s->i1 || LLVMGetTypeKind(type) == LLVMPointerTypeKind ? simt_to_bits(s, element) : element;
}

/* Words are as wide as elements, or several elements make one word, or several words one element. Only neighbours that
 * share a word are put into one vector: larger ones are harder for LLVM to see through. */
void simt_pack(Simt *s, LLVMValueRef const *elements, int count, int element_bytes, const Access *access,
               LLVMValueRef *words)
{
    int word_bytes = access->word_bits / 8;
    int from = TT_MAX(1, word_bytes / element_bytes), to = TT_MAX(1, element_bytes / word_bytes);
    LLVMTypeRef word = simt_int_type(s, access->word_bits);
    for (int i = 0, w = 0; i < count; i += from, w += to) {
        LLVMValueRef first = storable(s, elements[i]);
        LLVMValueRef group = LLVMGetPoison(vector_of(LLVMTypeOf(first), from));
        for (int j = 0; j < from; j++)
            group = insert(s, group, storable(s, elements[i + j]), j, from);
        LLVMTypeRef type = vector_of(word, to);
        group = LLVMTypeOf(group) == type ? group : LLVMBuildBitCast(s->b, group, type, "");
        for (int j = 0; j < to; j++)
            words[w + j] = extract(s, group, j, to);
    }
}

void simt_unpack(Simt *s, LLVMValueRef const *words, const Access *access, int count, int element_bytes,
                 LLVMTypeRef type, LLVMValueRef *elements)
{
    int word_bytes = access->word_bits / 8;
    int to = TT_MAX(1, word_bytes / element_bytes), from = TT_MAX(1, element_bytes / word_bytes);
    bool plain = type != s->i1 && LLVMGetTypeKind(type) != LLVMPointerTypeKind;
    LLVMTypeRef stored = plain ? type : simt_int_type(s, 8 * element_bytes);
    LLVMTypeRef word = simt_int_type(s, access->word_bits);
    for (int i = 0, w = 0; i < count; i += to, w += from) {
        LLVMValueRef group = LLVMGetPoison(vector_of(word, from));
        for (int j = 0; j < from; j++)
            group = insert(s, group, words[w + j], j, from);
        LLVMTypeRef shape = vector_of(stored, to);
        group = LLVMTypeOf(group) == shape ? group : LLVMBuildBitCast(s->b, group, shape, "");
        for (int j = 0; j < to; j++) {
            LLVMValueRef element = extract(s, group, j, to);
            elements[i + j] = plain ? element : simt_from_bits(s, element, type);
        }
    }
}

/* ---- vectors --------------------------------------------------------------------------------------------------------------------- */

/* How an operation's registers fall into vectors: vector i of register r (none of the bits set) has register r with
 * bits[j] set for each bit j of i. */
typedef struct Vectors {
    int axis, count_bits, bits[4];
    uint32_t mask; /* of the register bits within a vector */
} Vectors;

static int register_of(const Vectors *v, int first, int at)
{
    for (int j = 0; j < v->count_bits; j++)
        if (at >> j & 1)
            first |= 1 << v->bits[j];
    return first;
}

static int64_t pow2_below(int64_t x) { return 1ll << tt_log2(TT_MAX(1, x)); }

static Vectors plan_vectors(Simt *s, const Op *op, const LinearLayout *layout, int bytes)
{
    Vectors v = {0};
    const Value *pointer = tt_operand(op, 0);
    const AxisInfo *info = tt_axis_info(s->axis_infos, pointer);
    for (int axis = layout->rank - 1; axis >= 0; axis--) {
        int64_t aligned = pow2_below(info->divisibility[axis] / bytes);
        int64_t widest = TT_MIN(TT_MIN(aligned, pow2_below(info->contiguity[axis])), TT_MAX(1, 16 / bytes));
        Vectors candidate = {.axis = axis};
        while (candidate.count_bits < tt_log2(widest) && candidate.count_bits < layout->out_bits[axis]) {
            uint64_t wanted = 1ull << (tt_layout_axis_start(layout, axis) + candidate.count_bits);
            int bit = 0;
            while (bit < layout->in_bits[LAYOUT_REGISTER] && layout->bases[bit] != wanted)
                bit++;
            if (bit == layout->in_bits[LAYOUT_REGISTER])
                break;
            candidate.bits[candidate.count_bits++] = bit;
            candidate.mask |= 1u << bit;
        }
        if (candidate.count_bits > v.count_bits)
            v = candidate;
    }
    return v;
}

/* ---- masks ---------------------------------------------------------------------------------------------------------------------- */

typedef struct Masks {
    const Tile *tile;     /* of the mask operand, or NULL */
    const AxisInfo *info; /* of it */
    const Type *type;     /* tile type, whose padding is masked off; NULL for scalars */
    const LinearLayout *layout;
    LLVMValueRef first_copy; /* of stores: this thread acts */
} Masks;

static bool is_true(LLVMValueRef x) { return LLVMIsAConstantInt(x) && !LLVMIsNull(x); }

/* NULL: always. */
static LLVMValueRef element_mask(Simt *s, const Masks *m, int reg)
{
    LLVMValueRef mask = m->tile && !is_true(m->tile->at[reg]) ? m->tile->at[reg] : NULL;
    return simt_and(s, mask, m->type ? simt_in_bounds(s, m->type, m->layout, reg) : NULL);
}

/* Is the mask the same for the whole vector? */
static bool is_uniform(const Masks *m, const Vectors *v, int first)
{
    int count = 1 << v->count_bits;
    if (m->type && m->type->shape[v->axis] % count)
        return false;
    if (!m->tile || m->info->constancy[v->axis] % count == 0)
        return true;
    for (int i = 1; i < count; i++)
        if (m->tile->at[register_of(v, first, i)] != m->tile->at[first])
            return false;
    return true;
}

/* The mask under which the vector starting at `first` is accessed at once (NULL: always); where it may be cut, single[i]
 * is that of element i when it is, else single[0] is NULL. */
static LLVMValueRef vector_masks(Simt *s, const Masks *m, const Vectors *v, int first, LLVMValueRef *single)
{
    int count = 1 << v->count_bits;
    LLVMValueRef whole = element_mask(s, m, first);
    single[0] = NULL;
    if (is_uniform(m, v, first))
        return whole;
    single[0] = whole;
    for (int i = 1; i < count; i++) {
        single[i] = element_mask(s, m, register_of(v, first, i));
        whole = simt_and(s, whole, single[i]);
    }
    if (!whole) {
        single[0] = NULL;
        return NULL;
    }
    LLVMValueRef cut = LLVMBuildNot(s->b, whole, "");
    for (int i = 0; i < count; i++)
        single[i] = simt_and(s, single[i], cut);
    return whole;
}

/* ---- access ---------------------------------------------------------------------------------------------------------------------- */

static Access access_of(const Op *op, LLVMValueRef pointer, int bytes)
{
    Access access = {.space = GLOBAL_MEMORY,
                     .cache = tt_string_attr(op, ATTR_cache, NULL),
                     .evict = tt_string_attr(op, ATTR_evict, NULL),
                     .is_volatile = tt_int_attr(op, ATTR_volatile, 0) != 0};
    access.offset = simt_peel_pointer(pointer, &access.address);
    simt_set_words(&access, bytes);
    return access;
}

enum { LONGEST_VECTOR = 16 };

typedef struct Load {
    const Op *op;
    Vectors vectors;
    Masks masks;
    const Tile *pointers, *other; /* other: NULL for zeros */
    Tile *result;
    LLVMValueRef all_whole; /* no vector of this thread is cut; NULL: none can be */
} Load;

/* A vector cut by the mask. */
typedef struct CutVector {
    int first;
    LLVMValueRef single[LONGEST_VECTOR];
} CutVector;

static LLVMValueRef other_element(Simt *s, const Load *load, int reg)
{
    return load->other ? load->other->at[reg] : LLVMConstNull(simt_type(s, load->op->results[0]->type));
}

/* Loads 2^bits neighbours under a predicate; elements: what they are where it is false, and the result. */
static void load_elements(Simt *s, const Load *load, int first, int count, LLVMValueRef predicate,
                          LLVMValueRef *elements)
{
    const Type *type = load->op->results[0]->type;
    int bytes = tt_byte_width(type);
    LLVMValueRef words[LONGEST_VECTOR], rest[LONGEST_VECTOR];
    Access access = access_of(load->op, load->pointers->at[first], bytes * count);
    access.predicate = predicate;
    if (predicate)
        simt_pack(s, elements, count, bytes, &access, rest);
    s->ops->load(s, &access, predicate ? rest : NULL, words);
    simt_unpack(s, words, &access, count, bytes, simt_type(s, type), elements);
}

static void load_vector(Simt *s, Load *load, int first, CutVector *cut)
{
    const Vectors *v = &load->vectors;
    int count = 1 << v->count_bits;
    LLVMValueRef elements[LONGEST_VECTOR];
    for (int i = 0; i < count; i++)
        elements[i] = other_element(s, load, register_of(v, first, i));
    cut->first = first;
    LLVMValueRef whole = vector_masks(s, &load->masks, v, first, cut->single);
    if (cut->single[0])
        load->all_whole = simt_and(s, load->all_whole, whole);
    load_elements(s, load, first, count, whole, elements);
    for (int i = 0; i < count; i++)
        load->result->at[register_of(v, first, i)] = elements[i];
}

/* The elements of cut vectors, one by one, in a branch that only threads with such vectors take. */
static void load_cut_vectors(Simt *s, Load *load, const CutVector *cuts, int count)
{
    const Vectors *v = &load->vectors;
    int total = count << v->count_bits;
    LLVMValueRef *loaded = TT_NEW_ARRAY(s->arena, LLVMValueRef, total);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(s->b), edge = simt_new_block(s, "cut"),
                      rest = simt_new_block(s, "");
    LLVMBuildCondBr(s->b, load->all_whole, rest, edge);
    LLVMPositionBuilderAtEnd(s->b, edge);
    for (int c = 0; c < count; c++)
        for (int i = 0; i < 1 << v->count_bits; i++) {
            int reg = register_of(v, cuts[c].first, i);
            LLVMValueRef *element = &loaded[(c << v->count_bits) + i];
            *element = load->result->at[reg];
            load_elements(s, load, reg, 1, cuts[c].single[i], element);
        }
    LLVMBuildBr(s->b, rest);
    LLVMPositionBuilderAtEnd(s->b, rest);
    for (int c = 0; c < count; c++)
        for (int i = 0; i < 1 << v->count_bits; i++) {
            LLVMValueRef *at = &load->result->at[register_of(v, cuts[c].first, i)];
            LLVMValueRef values[] = {*at, loaded[(c << v->count_bits) + i]};
            LLVMValueRef phi = LLVMBuildPhi(s->b, LLVMTypeOf(*at), "");
            LLVMAddIncoming(phi, values, (LLVMBasicBlockRef[]){from, edge}, 2);
            *at = phi;
        }
}

static Masks masks_of(Simt *s, const Op *op, int operand, const LinearLayout *layout)
{
    Masks m = {.layout = layout, .type = layout ? tt_operand(op, 0)->type : NULL};
    if (op->operand_count > operand) {
        m.tile = simt_tile(s, tt_operand(op, operand));
        m.info = tt_axis_info(s->axis_infos, tt_operand(op, operand));
    }
    return m;
}

void simt_load(Simt *s, const Op *op)
{
    const Value *value = op->results[0];
    const LinearLayout *layout = value->layout;
    Load load = {.op = op, .masks = masks_of(s, op, 1, layout), .pointers = simt_tile(s, tt_operand(op, 0))};
    if (op->operand_count > 2)
        load.other = simt_tile(s, tt_operand(op, 2));
    if (layout)
        load.vectors = plan_vectors(s, op, layout, tt_byte_width(value->type));
    Tile *tile = load.result = simt_new_tile(s, simt_registers(value));
    CutVector *cuts = TT_NEW_ARRAY(s->arena, CutVector, tile->count);
    int cut_count = 0;
    for (int r = 0; r < tile->count; r++) {
        if ((uint32_t)r & load.vectors.mask || (layout && simt_is_register_copy(layout, r)))
            continue;
        load_vector(s, &load, r, &cuts[cut_count]);
        cut_count += cuts[cut_count].single[0] != NULL;
    }
    if (cut_count)
        load_cut_vectors(s, &load, cuts, cut_count);
    for (int r = 0; r < tile->count; r++)
        if (!tile->at[r]) /* a copy */
            tile->at[r] = tile->at[tt_register_of(layout, tt_f2_apply(layout->bases, (uint64_t)r))];
    simt_set(s, value, tile);
}

static void store_elements(Simt *s, const Op *op, LLVMValueRef pointer, LLVMValueRef const *elements,
                           int count, LLVMValueRef predicate)
{
    int bytes = tt_byte_width(tt_operand(op, 1)->type);
    LLVMValueRef words[LONGEST_VECTOR];
    Access access = access_of(op, pointer, bytes * count);
    access.predicate = predicate;
    simt_pack(s, elements, count, bytes, &access, words);
    s->ops->store(s, &access, words);
}

static void store_vector(Simt *s, const Op *op, const Vectors *v, const Masks *m, const Tile *pointers,
                         const Tile *values, int first)
{
    int count = 1 << v->count_bits;
    LLVMValueRef single[LONGEST_VECTOR], elements[LONGEST_VECTOR];
    LLVMValueRef whole = vector_masks(s, m, v, first, single);
    for (int i = 0; i < count; i++)
        elements[i] = values->at[register_of(v, first, i)];
    store_elements(s, op, pointers->at[first], elements, count, simt_and(s, whole, m->first_copy));
    for (int i = 0; i < count && single[0]; i++)
        store_elements(s, op, pointers->at[register_of(v, first, i)], &elements[i], 1,
                       simt_and(s, single[i], m->first_copy));
}

void simt_store(Simt *s, const Op *op)
{
    const Value *pointer = tt_operand(op, 0);
    const LinearLayout *layout = pointer->layout;
    const Tile *pointers = simt_tile(s, pointer), *values = simt_tile(s, tt_operand(op, 1));
    Masks masks = masks_of(s, op, 2, layout);
    masks.first_copy = simt_is_first_copy(s, layout);
    Vectors vectors = {0};
    if (layout)
        vectors = plan_vectors(s, op, layout, tt_byte_width(tt_operand(op, 1)->type));
    for (int r = 0; r < pointers->count; r++)
        if (!((uint32_t)r & vectors.mask) && !(layout && simt_is_register_copy(layout, r)))
            store_vector(s, op, &vectors, &masks, pointers, values, r);
}
