/* Memory accesses as PTX. A plain access is an LLVM load or store; one with a predicate or with hints is inline PTX, for
 * LLVM would make a branch of the one and has no word for the other. PTX ISA: "ld", "st", "atom", "red". */
#include "gpu/nvptx.h"

/* ---- operands of inline PTX --------------------------------------------------------------------------------------------------------- */

/* Text, constraints and arguments of one instruction, operand by operand: outputs first. */
typedef struct Instruction {
    Simt *s;
    Text text, constraints;
    LLVMValueRef arguments[48];
    int operands, count; /* operands so far, arguments among them */
} Instruction;

static Instruction new_instruction(Simt *s)
{
    return (Instruction){.s = s, .text = {.arena = s->arena}, .constraints = {.arena = s->arena}};
}

static int add_operand(Instruction *i, const char *constraint, LLVMValueRef argument)
{
    tt_text_add(&i->constraints, "%s%s", i->operands ? "," : "", constraint);
    if (argument)
        i->arguments[i->count++] = argument;
    return i->operands++;
}

static LLVMValueRef finish(Instruction *i, LLVMTypeRef result)
{
    return nvptx_asm(i->s, ASM_MEMORY, i->text.data, i->constraints.data ? i->constraints.data : "", result,
                     i->arguments, i->count);
}

/* Words of 8 bits travel in registers of 16. */
static LLVMTypeRef register_type(Simt *s, int bits)
{
    return bits <= 16 ? s->i16 : bits == 32 ? s->i32 : s->i64;
}

static const char *register_constraint(int bits) { return bits <= 16 ? "h" : bits == 32 ? "r" : "l"; }

LLVMValueRef nvptx_shared_address(Simt *s, LLVMValueRef offset)
{
    LLVMValueRef base = LLVMBuildPtrToInt(s->b, s->shared, s->i32, "");
    return LLVMBuildAdd(s->b, base, offset, "");
}

static int add_address(Instruction *i, const Access *access)
{
    if (access->space == GLOBAL_MEMORY)
        return add_operand(i, "l", access->address);
    return add_operand(i, "r", nvptx_shared_address(i->s, access->address));
}

static void add_predicate(Instruction *i, const Access *access)
{
    if (access->predicate)
        tt_text_add(&i->text, "@$%d ", add_operand(i, "b", access->predicate));
}

/* ---- hints ---------------------------------------------------------------------------------------------------------------------------- */

static bool has_eviction(const Access *access)
{
    return access->evict && (!strcmp(access->evict, "evict_first") || !strcmp(access->evict, "evict_last"));
}

static bool has_hints(const Access *access)
{
    return access->is_volatile || access->order || (access->cache && *access->cache) || has_eviction(access);
}

/* i64: what an access wants of the L2 cache, from sm_80 on; NULL: nothing. */
static LLVMValueRef cache_policy(Simt *s, const Access *access)
{
    if (!has_eviction(access) || s->options->sm < 80 || access->is_volatile)
        return NULL;
    const char *text =
        tt_arena_format(s->arena, "createpolicy.fractional.L2::%s.b64 $0, 1.0;", access->evict);
    return nvptx_asm(s, ASM_PURE, text, "=l", s->i64, NULL, 0);
}

/* `.volatile.global`, `.acquire.gpu.global`, or `.global` with a cache operator or the eviction priority in L1, then the vector and type. */
static void add_modifiers(Instruction *i, const Access *access, LLVMValueRef policy)
{
    Text *text = &i->text;
    const char *space = access->space == GLOBAL_MEMORY ? ".global" : ".shared";
    const char *order = access->order ? access->order : access->is_volatile ? ".volatile" : "";
    tt_text_add(text, "%s%s", order, space);
    if (*order)
        ;
    else if (access->cache && *access->cache)
        tt_text_add(text, "%s", access->cache);
    else if (has_eviction(access))
        tt_text_add(text, ".L1::%s", access->evict);
    if (policy)
        tt_text_add(text, ".L2::cache_hint");
    if (access->words > 1)
        tt_text_add(text, ".v%d", access->words);
    tt_text_add(text, ".b%d ", access->word_bits);
}

static void add_words(Instruction *i, int first, int words)
{
    tt_text_add(&i->text, words > 1 ? "{" : "");
    for (int w = 0; w < words; w++)
        tt_text_add(&i->text, "%s$%d", w ? ", " : "", first + w);
    tt_text_add(&i->text, words > 1 ? "}" : "");
}

static void add_place(Instruction *i, int address, int64_t offset)
{
    tt_text_add(&i->text, offset ? "[$%d+%lld]" : "[$%d]", address, (long long)offset);
}

/* ---- plain accesses ------------------------------------------------------------------------------------------------------------------- */

static LLVMValueRef plain_pointer(Simt *s, const Access *access)
{
    LLVMValueRef pointer = access->address, index = access->address;
    if (access->space == SHARED_MEMORY)
        pointer = LLVMBuildGEP2(s->b, s->i8, s->shared, &index, 1, "");
    LLVMValueRef offset = simt_int(s->i64, access->offset);
    return access->offset ? LLVMBuildGEP2(s->b, s->i8, pointer, &offset, 1, "") : pointer;
}

static LLVMTypeRef plain_type(Simt *s, const Access *access)
{
    LLVMTypeRef word = simt_int_type(s, access->word_bits);
    return access->words > 1 ? LLVMVectorType(word, (unsigned)access->words) : word;
}

static unsigned alignment(const Access *access) { return (unsigned)(access->words * access->word_bits / 8); }

static void plain_load(Simt *s, const Access *access, LLVMValueRef *words)
{
    LLVMValueRef load = LLVMBuildLoad2(s->b, plain_type(s, access), plain_pointer(s, access), "");
    LLVMSetAlignment(load, alignment(access));
    for (int w = 0; w < access->words; w++)
        words[w] = access->words > 1 ? LLVMBuildExtractElement(s->b, load, simt_i32(s, w), "") : load;
}

static void plain_store(Simt *s, const Access *access, LLVMValueRef const *words)
{
    LLVMValueRef value = access->words > 1 ? LLVMGetPoison(plain_type(s, access)) : words[0];
    for (int w = 0; w < access->words && access->words > 1; w++)
        value = LLVMBuildInsertElement(s->b, value, words[w], simt_i32(s, w), "");
    LLVMSetAlignment(LLVMBuildStore(s->b, value, plain_pointer(s, access)), alignment(access));
}

/* ---- loads and stores ----------------------------------------------------------------------------------------------------------------- */

/* Registers are wider than what is loaded: their high bits are zeros. */
static void say_range(Simt *s, LLVMValueRef call, int bits)
{
    LLVMMetadataRef bounds[] = {LLVMValueAsMetadata(simt_i32(s, 0)),
                                LLVMValueAsMetadata(simt_i32(s, 1 << bits))};
    LLVMMetadataRef node = LLVMMDNodeInContext2(s->context, bounds, TT_COUNT(bounds));
    LLVMSetMetadata(call, LLVMGetMDKindIDInContext(s->context, "range", 5),
                    LLVMMetadataAsValue(s->context, node));
}

/* Vectors of 64-bit words end at two: four would be 32 bytes. `other` is what the registers hold before. */
void nvptx_load(Simt *s, const Access *access, LLVMValueRef const *other, LLVMValueRef *words)
{
    if (!access->predicate && !has_hints(access)) {
        plain_load(s, access, words);
        return;
    }
    Instruction i = new_instruction(s);
    int bits = access->word_bits,
        width = TT_MAX(bits, 32); /* what is loaded into half a register is moved once more */
    LLVMTypeRef type = register_type(s, width), types[16];
    const char *output = tt_arena_format(s->arena, "=%s", register_constraint(width));
    for (int w = 0; w < access->words; w++) {
        add_operand(&i, output, NULL);
        types[w] = type;
    }
    for (int w = 0; other && w < access->words; w++)
        add_operand(&i, tt_arena_format(s->arena, "%d", w), LLVMBuildIntCast2(s->b, other[w], type, 0, ""));
    LLVMValueRef policy = cache_policy(s, access);
    int address = add_address(&i, access);
    add_predicate(&i, access);
    tt_text_add(&i.text, "ld");
    add_modifiers(&i, access, policy);
    add_words(&i, 0, access->words);
    tt_text_add(&i.text, ", ");
    add_place(&i, address, access->offset);
    if (policy)
        tt_text_add(&i.text, ", $%d", add_operand(&i, "l", policy));
    tt_text_add(&i.text, ";");
    bool one = access->words == 1;
    LLVMTypeRef result = one ? type : LLVMStructTypeInContext(s->context, types, (unsigned)access->words, 0);
    LLVMValueRef loaded = finish(&i, result);
    if (one && bits < width)
        say_range(s, loaded, bits);
    for (int w = 0; w < access->words; w++) {
        LLVMValueRef word = one ? loaded : LLVMBuildExtractValue(s->b, loaded, (unsigned)w, "");
        words[w] = LLVMBuildIntCast2(s->b, word, simt_int_type(s, bits), 0, "");
    }
}

void nvptx_store(Simt *s, const Access *access, LLVMValueRef const *words)
{
    if (!access->predicate && !has_hints(access)) {
        plain_store(s, access, words);
        return;
    }
    Instruction i = new_instruction(s);
    int bits = access->word_bits;
    for (int w = 0; w < access->words; w++) {
        LLVMValueRef word = LLVMBuildIntCast2(s->b, words[w], register_type(s, bits), 0, "");
        add_operand(&i, register_constraint(bits), word);
    }
    LLVMValueRef policy = cache_policy(s, access);
    int address = add_address(&i, access);
    add_predicate(&i, access);
    tt_text_add(&i.text, "st");
    add_modifiers(&i, access, policy);
    add_place(&i, address, access->offset);
    tt_text_add(&i.text, ", ");
    add_words(&i, 0, access->words);
    if (policy)
        tt_text_add(&i.text, ", $%d", add_operand(&i, "l", policy));
    tt_text_add(&i.text, ";");
    finish(&i, s->none);
}

/* ---- atomics -------------------------------------------------------------------------------------------------------------------------- */

static int type_bits(TypeKind type)
{
    switch (type) {
    case TT_I64:
    case TT_F64:
        return 64;
    case TT_I32:
    case TT_F32:
        return 32;
    case TT_I16:
    case TT_F16:
    case TT_BF16:
        return 16;
    default:
        return 8;
    }
}

bool nvptx_has_atomic(const Simt *s, AtomicKind kind, TypeKind type)
{
    int bits = type_bits(type);
    switch (kind) {
    case ATOMIC_FADD:
        return type != TT_BF16 || s->options->sm >= 90;
    case ATOMIC_CAS:
        return bits >= 16;
    default:
        return bits >= 32;
    }
}

static bool is_half(const Atomic *atomic)
{
    return atomic->kind == ATOMIC_FADD && type_bits(atomic->type) == 16;
}

/* Halves are added in pairs: what adds to a single one is a loop in machine code. */
static const char *type_name(Simt *s, const Atomic *atomic)
{
    static const char kinds[ATOMIC_KINDS + 1] = {
        [ATOMIC_ADD] = 'u',   [ATOMIC_FADD] = 'f',  [ATOMIC_MIN_S] = 's', [ATOMIC_MAX_S] = 's',
        [ATOMIC_MIN_U] = 'u', [ATOMIC_MAX_U] = 'u', [ATOMIC_AND] = 'b',   [ATOMIC_OR] = 'b',
        [ATOMIC_XOR] = 'b',   [ATOMIC_XCHG] = 'b',  [ATOMIC_CAS] = 'b'};
    if (is_half(atomic))
        return atomic->type == TT_F16 ? "f16x2" : "bf16x2";
    return tt_arena_format(s->arena, "%c%d", kinds[atomic->kind], type_bits(atomic->type));
}

/* Without a result it is a reduction, which has no acquiring forms. */
static bool is_reduction(const Atomic *atomic)
{
    bool order = !strcmp(atomic->sem, "relaxed") || !strcmp(atomic->sem, "release");
    return atomic->result_unused && order && atomic->kind != ATOMIC_XCHG && atomic->kind != ATOMIC_CAS;
}

/* One instruction with vectors of so many words; the old value as bits, or NULL. */
static LLVMValueRef add_atomic(Simt *s, const Atomic *atomic, const Access *access, LLVMValueRef const *words,
                               int count)
{
    static const char *const names[ATOMIC_KINDS] = {
        [ATOMIC_ADD] = "add",   [ATOMIC_FADD] = "add",  [ATOMIC_MIN_S] = "min", [ATOMIC_MAX_S] = "max",
        [ATOMIC_MIN_U] = "min", [ATOMIC_MAX_U] = "max", [ATOMIC_AND] = "and",   [ATOMIC_OR] = "or",
        [ATOMIC_XOR] = "xor",   [ATOMIC_XCHG] = "exch", [ATOMIC_CAS] = "cas"};
    Instruction i = new_instruction(s);
    bool reduces = is_reduction(atomic),
         swaps = atomic->kind == ATOMIC_CAS; /* whose order comes first, by custom */
    LLVMTypeRef type = LLVMTypeOf(words[0]);
    const char *constraint = register_constraint((int)LLVMGetIntTypeWidth(type));
    if (!reduces)
        add_operand(&i, tt_arena_format(s->arena, "=%s", constraint), NULL);
    int address = add_address(&i, access);
    add_predicate(&i, access);
    tt_text_add(&i.text, "%s.%s.%s.%s.%s%s", reduces ? "red" : "atom",
                access->space == GLOBAL_MEMORY ? "global" : "shared", swaps ? atomic->sem : atomic->scope,
                swaps ? atomic->scope : atomic->sem, names[atomic->kind], is_half(atomic) ? ".noftz" : "");
    if (count > 1)
        tt_text_add(&i.text, ".v%d", count);
    tt_text_add(&i.text, ".%s %s", type_name(s, atomic), reduces ? "" : "$0, ");
    add_place(&i, address, access->offset);
    tt_text_add(&i.text, ", ");
    if (swaps)
        tt_text_add(&i.text, "$%d, ", add_operand(&i, constraint, simt_to_bits(s, atomic->compare)));
    int first = i.operands;
    for (int w = 0; w < count; w++)
        add_operand(&i, constraint, words[w]);
    add_words(&i, first, count);
    tt_text_add(&i.text, ";");
    LLVMValueRef old = finish(&i, reduces ? s->none : type);
    return reduces ? NULL : old;
}

/* Adds to the pair that a half is in; -0 changes nothing of the other. */
static LLVMValueRef add_half(Simt *s, const Atomic *atomic)
{
    enum { MINUS_ZERO = 0x8000 };
    Access access = atomic->access;
    LLVMValueRef offset = simt_int(s->i64, access.offset);
    LLVMValueRef address = LLVMBuildPtrToInt(s->b, access.address, s->i64, "");
    address = LLVMBuildAdd(s->b, address, offset, "");
    LLVMValueRef is_high = LLVMBuildAnd(s->b, LLVMBuildTrunc(s->b, address, s->i32, ""), simt_i32(s, 2), "");
    LLVMValueRef shift = LLVMBuildShl(s->b, is_high, simt_i32(s, 3), "");
    LLVMValueRef back = LLVMBuildXor(s->b, shift, simt_i32(s, 16), "");
    LLVMValueRef value = LLVMBuildZExt(s->b, simt_to_bits(s, atomic->value), s->i32, "");
    value = LLVMBuildOr(s->b, LLVMBuildShl(s->b, value, shift, ""),
                        LLVMBuildShl(s->b, simt_i32(s, MINUS_ZERO), back, ""), "");
    address = LLVMBuildAnd(s->b, address, simt_int(s->i64, ~3ll), "");
    access.address = LLVMBuildIntToPtr(s->b, address, s->global_ptr, "");
    access.offset = 0;
    LLVMValueRef old = add_atomic(s, atomic, &access, &value, 1);
    if (!old)
        return NULL;
    old = LLVMBuildTrunc(s->b, LLVMBuildLShr(s->b, old, shift, ""), s->i16, "");
    return simt_from_bits(s, old, LLVMTypeOf(atomic->value));
}

/* An atomic load or store: an access with an order. */
static LLVMValueRef access_in_order(Simt *s, const Atomic *atomic)
{
    Access access = atomic->access;
    access.order = tt_arena_format(s->arena, ".%s.%s", atomic->sem, atomic->scope);
    access.words = 1;
    access.word_bits = type_bits(atomic->type);
    LLVMValueRef word = simt_to_bits(s, atomic->value);
    if (atomic->kind == ATOMIC_STORE) {
        nvptx_store(s, &access, &word);
        return NULL;
    }
    nvptx_load(s, &access, NULL, &word);
    return simt_from_bits(s, word, LLVMTypeOf(atomic->value));
}

LLVMValueRef nvptx_atomic(Simt *s, const Atomic *atomic)
{
    if (atomic->kind == ATOMIC_LOAD || atomic->kind == ATOMIC_STORE)
        return access_in_order(s, atomic);
    if (is_half(atomic))
        return add_half(s, atomic);
    LLVMValueRef bits = simt_to_bits(s, atomic->value);
    LLVMValueRef old = add_atomic(s, atomic, &atomic->access, &bits, 1);
    return old ? simt_from_bits(s, old, LLVMTypeOf(atomic->value)) : NULL;
}

int nvptx_widest_addition(const Simt *s, TypeKind type)
{
    bool has_vectors = s->options->sm >= 90;
    int bits = type_bits(type);
    if (bits == 16)
        return has_vectors ? 8 : type == TT_F16 ? 2 : 1;
    return has_vectors && bits == 32 ? 4 : 1;
}

void nvptx_add_vector(Simt *s, const Atomic *atomic, LLVMValueRef const *values, int count)
{
    LLVMValueRef words[4];
    simt_pack(s, values, count, simt_bytes(LLVMTypeOf(values[0])), &atomic->access, words);
    add_atomic(s, atomic, &atomic->access, words, atomic->access.words);
}
