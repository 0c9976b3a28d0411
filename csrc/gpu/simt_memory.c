/* Loads and stores: registers that hold neighbours are accessed as one vector of up to 16 bytes. A mask becomes a
 * predicate. Where the mask may cut a vector, the vector is accessed under the conjunction of its masks, and each
 * element under its own mask where that does not hold: full speed inside, right at the edge. Loads of such elements
 * stand in one branch for the whole operation, or they would have to wait for the vectors whose registers they fill. */
#include "gpu/simt_vectors.h"

/* ---- elements as words ----------------------------------------------------------------------------------------------------------- */

void simt_set_words(Access *access, int bytes)
{
    access->word_bits = bytes % 4 ? 8 * bytes : 32; /* 1 or 2 bytes, or words of 4 */
    access->words = 8 * bytes / access->word_bits;
}

Access simt_register_access(int bytes)
{
    Access access = {0};
    simt_set_words(&access, bytes);
    return access;
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

/* The 16 bits that two bytes are the halves of, as instructions leave them that convert two, or NULL. */
static LLVMValueRef halves_of(Simt *s, LLVMValueRef const *bytes)
{
    LLVMValueRef vector = NULL;
    for (int i = 0; i < 2; i++) {
        bool is_half = LLVMIsAExtractElementInst(bytes[i]) && (!i || LLVMGetOperand(bytes[i], 0) == vector) &&
                       LLVMGetOperand(bytes[i], 1) == simt_i32(s, i);
        if (!is_half)
            return NULL;
        vector = LLVMGetOperand(bytes[i], 0);
    }
    LLVMValueRef word = LLVMIsABitCastInst(vector) ? LLVMGetOperand(vector, 0) : NULL;
    return word && LLVMTypeOf(word) == s->i16 ? word : NULL;
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
        LLVMValueRef low = from == 4 ? halves_of(s, &elements[i]) : NULL,
                     high = low ? halves_of(s, &elements[i + 2]) : NULL;
        if (high) {
            LLVMValueRef pairs = insert(s, LLVMGetPoison(vector_of(s->i16, 2)), low, 0, 2);
            words[w] = LLVMBuildBitCast(s->b, insert(s, pairs, high, 1, 2), word, "");
            continue;
        }
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

/* ---- access ---------------------------------------------------------------------------------------------------------------------- */

static Access access_of(const Op *op, LLVMValueRef pointer, int bytes)
{
    Access access = {.space = GLOBAL_MEMORY,
                     .cache = tt_string_attr(op, ATTR_cache, NULL),
                     .evict = tt_string_attr(op, ATTR_evict, NULL),
                     .is_volatile = tt_int_attr(op, ATTR_volatile, 0) != 0,
                     .reads_around = tt_find_attr(op, ATTR_around)};
    access.offset = simt_peel_pointer(pointer, &access.address);
    simt_set_words(&access, bytes);
    return access;
}

typedef struct Load {
    const Op *op;
    Vectors vectors;
    Masks masks;
    const Tile *pointers, *other; /* other: NULL for zeros */
    const AxisInfo *info;         /* of the pointers */
    Tile *result;
    LLVMValueRef all_whole;     /* no vector of this thread is cut; NULL: none can be */
    LLVMValueRef *single_masks; /* of the first registers of vectors */
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
    bool leaves = predicate && !tt_int_attr(load->op, ATTR_unread, 0);
    if (leaves)
        simt_pack(s, elements, count, bytes, &access, rest);
    s->ops->load(s, &access, leaves ? rest : NULL, words);
    simt_unpack(s, words, &access, count, bytes, simt_type(s, type), elements);
}

static bool has_same_others(const Load *load, int a, int b)
{
    const Vectors *v = &load->vectors;
    for (int i = 0; load->other && i < 1 << v->count_bits; i++)
        if (load->other->at[simt_vector_register(v, a, i)] != load->other->at[simt_vector_register(v, b, i)])
            return false;
    return true;
}

/* The first register of a vector before the one that begins at `reg` which loads the same under the same mask, the scale of a group
 * for instance, or the weights of columns once more for another row; or -1. */
static int same_load(const Load *load, int reg, LLVMValueRef mask)
{
    int alike = simt_alike(load->masks.layout, load->info, reg);
    for (int r = 0; r < reg && !tt_int_attr(load->op, ATTR_volatile, 0); r++)
        if (load->result->at[r] && !((uint32_t)r & load->vectors.mask) &&
            (r == alike || load->pointers->at[r] == load->pointers->at[reg]) &&
            load->single_masks[r] == mask && has_same_others(load, r, reg))
            return r;
    return -1;
}

static void load_vector(Simt *s, Load *load, int first, CutVector *cut)
{
    const Vectors *v = &load->vectors;
    int count = 1 << v->count_bits;
    LLVMValueRef elements[LONGEST_VECTOR];
    for (int i = 0; i < count; i++)
        elements[i] = other_element(s, load, simt_vector_register(v, first, i));
    cut->first = first;
    LLVMValueRef whole = simt_vector_masks(s, &load->masks, v, first, cut->single);
    if (cut->single[0])
        load->all_whole = simt_and(s, load->all_whole, whole);
    int same = cut->single[0] ? -1 : same_load(load, first, whole);
    load->single_masks[first] = whole;
    if (same < 0)
        load_elements(s, load, first, count, whole, elements);
    for (int i = 0; same >= 0 && i < count; i++)
        elements[i] = load->result->at[simt_vector_register(v, same, i)];
    for (int i = 0; i < count; i++)
        load->result->at[simt_vector_register(v, first, i)] = elements[i];
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
            int reg = simt_vector_register(v, cuts[c].first, i);
            LLVMValueRef *element = &loaded[(c << v->count_bits) + i];
            *element = load->result->at[reg];
            load_elements(s, load, reg, 1, cuts[c].single[i], element);
        }
    LLVMBuildBr(s->b, rest);
    LLVMPositionBuilderAtEnd(s->b, rest);
    for (int c = 0; c < count; c++)
        for (int i = 0; i < 1 << v->count_bits; i++) {
            LLVMValueRef *at = &load->result->at[simt_vector_register(v, cuts[c].first, i)];
            LLVMValueRef values[] = {*at, loaded[(c << v->count_bits) + i]};
            LLVMValueRef phi = LLVMBuildPhi(s->b, LLVMTypeOf(*at), "");
            LLVMAddIncoming(phi, values, (LLVMBasicBlockRef[]){from, edge}, 2);
            *at = phi;
        }
}

void simt_load(Simt *s, const Op *op)
{
    const Value *value = op->results[0];
    const LinearLayout *layout = value->layout;
    Load load = {.op = op,
                 .masks = simt_masks_of(s, op, 1, layout),
                 .pointers = simt_tile(s, tt_operand(op, 0)),
                 .info = tt_axis_info(s->axis_infos, tt_operand(op, 0))};
    if (op->operand_count > 2)
        load.other = simt_tile(s, tt_operand(op, 2));
    int bytes = tt_byte_width(value->type);
    if (layout)
        load.vectors = simt_plan_vectors(s, op, layout, bytes, TT_MAX(1, 16 / bytes));
    Tile *tile = load.result = simt_new_tile(s, simt_registers(value));
    load.single_masks = TT_NEW_ARRAY(s->arena, LLVMValueRef, tile->count);
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
    LLVMValueRef whole = simt_vector_masks(s, m, v, first, single);
    for (int i = 0; i < count; i++)
        elements[i] = values->at[simt_vector_register(v, first, i)];
    store_elements(s, op, pointers->at[first], elements, count, simt_and(s, whole, m->first_copy));
    for (int i = 0; i < count && single[0]; i++)
        store_elements(s, op, pointers->at[simt_vector_register(v, first, i)], &elements[i], 1,
                       simt_and(s, single[i], m->first_copy));
}

void simt_store(Simt *s, const Op *op)
{
    const Value *pointer = tt_operand(op, 0);
    const LinearLayout *layout = pointer->layout;
    const Tile *pointers = simt_tile(s, pointer), *values = simt_tile(s, tt_operand(op, 1));
    Masks masks = simt_masks_of(s, op, 2, layout);
    masks.first_copy = simt_is_first_copy(s, layout);
    Vectors vectors = {0};
    int bytes = tt_byte_width(tt_operand(op, 1)->type);
    if (layout)
        vectors = simt_plan_vectors(s, op, layout, bytes, TT_MAX(1, 16 / bytes));
    for (int r = 0; r < pointers->count; r++)
        if (!((uint32_t)r & vectors.mask) && !(layout && simt_is_register_copy(layout, r)))
            store_vector(s, op, &vectors, &masks, pointers, values, r);
}
