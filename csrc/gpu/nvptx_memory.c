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

static LLVMValueRef shared_address(Simt *s, LLVMValueRef offset)
{
    LLVMValueRef base = LLVMBuildPtrToInt(s->b, s->shared, s->i32, "");
    return LLVMBuildAdd(s->b, base, offset, "");
}

static int add_address(Instruction *i, const Access *access)
{
    if (access->space == GLOBAL_MEMORY)
        return add_operand(i, "l", access->address);
    return add_operand(i, "r", shared_address(i->s, access->address));
}

static void add_predicate(Instruction *i, const Access *access)
{
    if (access->predicate)
        tt_text_add(&i->text, "@$%d ", add_operand(i, "b", access->predicate));
}

/* ---- hints ---------------------------------------------------------------------------------------------------------------------------- */

static bool is_eviction(const Access *access, const char *policy)
{
    return access->evict && !strcmp(access->evict, policy);
}

static bool has_eviction(const Access *access)
{
    return is_eviction(access, "evict_first") || is_eviction(access, "evict_last");
}

static bool has_hints(const Access *access)
{
    return access->is_volatile || (access->cache && *access->cache) || has_eviction(access);
}

/* A policy for the L2 cache, from sm_80 on. */
static LLVMValueRef cache_policy(Simt *s, const Access *access)
{
    if (!has_eviction(access) || s->options->sm < 80 || access->is_volatile)
        return NULL;
    const char *text =
        tt_arena_format(s->arena, "createpolicy.fractional.L2::%s.b64 $0, 1.0;", access->evict);
    return nvptx_asm(s, ASM_PURE, text, "=l", s->i64, NULL, 0);
}

/* `.volatile.global`, or `.global` with a cache operator or the eviction priority in L1, then the vector and type. */
static void add_modifiers(Instruction *i, const Access *access, LLVMValueRef policy)
{
    Text *text = &i->text;
    const char *space = access->space == GLOBAL_MEMORY ? ".global" : ".shared";
    tt_text_add(text, "%s%s", access->is_volatile ? ".volatile" : "", space);
    if (access->is_volatile)
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

/* Vectors of 64-bit words end at two: four would be 32 bytes. `other` is what the registers hold before. */
void nvptx_load(Simt *s, const Access *access, LLVMValueRef const *other, LLVMValueRef *words)
{
    if (!access->predicate && !has_hints(access)) {
        plain_load(s, access, words);
        return;
    }
    Instruction i = new_instruction(s);
    int bits = access->word_bits;
    LLVMTypeRef type = register_type(s, bits), types[16];
    const char *output = tt_arena_format(s->arena, "=%s", register_constraint(bits));
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

static const char *operation(const Atomic *atomic)
{
    static const char *const names[ATOMIC_KINDS] = {
        [ATOMIC_ADD] = "add.u",   [ATOMIC_FADD] = "add.f",  [ATOMIC_MIN_S] = "min.s",
        [ATOMIC_MAX_S] = "max.s", [ATOMIC_MIN_U] = "min.u", [ATOMIC_MAX_U] = "max.u",
        [ATOMIC_AND] = "and.b",   [ATOMIC_OR] = "or.b",     [ATOMIC_XOR] = "xor.b",
        [ATOMIC_XCHG] = "exch.b", [ATOMIC_CAS] = "cas.b"};
    if (atomic->kind == ATOMIC_FADD && atomic->type == TT_F16)
        return "add.noftz.f";
    return atomic->kind == ATOMIC_FADD && atomic->type == TT_BF16 ? "add.noftz.bf" : names[atomic->kind];
}

/* Without a result it is a reduction, which has no acquiring forms. */
static bool is_reduction(const Atomic *atomic)
{
    bool order = !strcmp(atomic->sem, "relaxed") || !strcmp(atomic->sem, "release");
    return atomic->result_unused && order && atomic->kind != ATOMIC_XCHG && atomic->kind != ATOMIC_CAS;
}

LLVMValueRef nvptx_atomic(Simt *s, const Atomic *atomic)
{
    Instruction i = new_instruction(s);
    const Access *access = &atomic->access;
    int bits = type_bits(atomic->type);
    const char *constraint = register_constraint(bits);
    bool reduces = is_reduction(atomic);
    if (!reduces)
        add_operand(&i, tt_arena_format(s->arena, "=%s", constraint), NULL);
    int address = add_address(&i, access);
    add_predicate(&i, access);
    tt_text_add(&i.text, "%s.%s.%s.%s.%s%d ", reduces ? "red" : "atom",
                access->space == GLOBAL_MEMORY ? "global" : "shared", atomic->scope, atomic->sem,
                operation(atomic), bits);
    tt_text_add(&i.text, reduces ? "" : "$0, ");
    add_place(&i, address, access->offset);
    if (atomic->kind == ATOMIC_CAS)
        tt_text_add(&i.text, ", $%d", add_operand(&i, constraint, simt_to_bits(s, atomic->compare)));
    tt_text_add(&i.text, ", $%d;", add_operand(&i, constraint, simt_to_bits(s, atomic->value)));
    if (reduces) {
        finish(&i, s->none);
        return NULL;
    }
    LLVMValueRef old = finish(&i, register_type(s, bits));
    return simt_from_bits(s, old, LLVMTypeOf(atomic->value));
}
