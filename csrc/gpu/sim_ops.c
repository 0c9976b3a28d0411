/* The target's operations for the simulator: the same SIMT code, compiled for the host, with calls of the simulated
 * machine where GPU threads meet or touch memory. What hardware has instructions for and a host has not is left to the
 * lowering's own software (narrow floats, reductions of a warp), which is tested that way. */
#include "gpu/sim.h"

/* ---- calls into the machine ---------------------------------------------------------------------------------------------- */

static LLVMTypeRef host_ptr(Simt *s) { return LLVMPointerTypeInContext(s->context, 0); }

LLVMValueRef machine_thread(Simt *s) { return LLVMGetParam(s->function, 0); }

static LLVMValueRef string_constant(Simt *s, const char *text) { return simt_string(s, text, 0); }

/* The parameter that a memory operation goes through: its number among the pointers, or -1. */
static int array_of(Simt *s, const Op *op)
{
    int pointer = op && op->opcode == OP_tensor_copy ? 3 : 0, number = 0;
    int param = op && op->operand_count ? tt_pointer_param(s->pointers, tt_operand(op, pointer)) : -1;
    const Region *body = s->module->functions->body;
    for (int i = 0; i < param; i++)
        number += tt_is_ptr(body->args[i]->type);
    return param >= 0 ? number : -1;
}

/* The SimSite of the operation being lowered. */
LLVMValueRef machine_site(Simt *s)
{
    void **slot = tt_map_slot_ptr(&s->symbols, s->op);
    if (*slot)
        return *slot;
    const Loc *loc = s->op ? tt_user_loc(s->op->loc) : NULL;
    const char *what = s->op ? tt_op_infos[s->op->opcode].name : "kernel";
    if (s->op && tt_has(s->op, READS) && tt_has(s->op, WRITES))
        what = "atomic access";
    LLVMValueRef fields[] = {string_constant(s, loc && loc->file ? loc->file : "unknown"),
                             simt_i32(s, loc ? loc->line : 0), simt_i32(s, loc ? loc->column : 0),
                             simt_i32(s, array_of(s, s->op)), string_constant(s, what)};
    LLVMValueRef value = LLVMConstStructInContext(s->context, fields, TT_COUNT(fields), 0);
    LLVMValueRef global = LLVMAddGlobal(s->llvm, LLVMTypeOf(value), "site");
    LLVMSetInitializer(global, value);
    LLVMSetGlobalConstant(global, 1);
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    slot = tt_map_slot_ptr(&s->symbols, s->op); /* strings may have made the map grow */
    return *slot = global;
}

LLVMValueRef machine_scratch(Simt *s, int words) { return simt_new_array(s, s->i64, words); }

/* ---- the kernel and its threads -------------------------------------------------------------------------------------------- */

/* A SimEntry: (thread, slots). There is a thread: LLVM would look for proof of that at each call that takes it, and number
 * the instructions of the block anew each time. The host's bf16 instructions flush denormals, so they are left alone. LLVM is not to make
 * calls of functions out of others (exp2 of pow): only what was asked for is there. */
static void add_kernel(Simt *s, const Function *function)
{
    LLVMTypeRef params[] = {host_ptr(s), host_ptr(s)};
    s->function = LLVMAddFunction(s->llvm, function->name, LLVMFunctionType(s->none, params, 2, 0));
    simt_add_attribute(s, "target-features",
                       tt_arena_format(s->arena, "%s,-avx512bf16,-avxneconvert", s->codegen->host.features));
    simt_add_attribute(s, "no-builtins", "");
    unsigned nonnull = LLVMGetEnumAttributeKindForName("nonnull", strlen("nonnull"));
    LLVMAddAttributeAtIndex(s->function, 1, LLVMCreateEnumAttribute(s->context, nonnull, 0));
}

static LLVMValueRef load_field(Simt *s, LLVMValueRef base, LLVMTypeRef type, size_t offset)
{
    LLVMValueRef index = simt_int(s->i64, (int64_t)offset);
    return LLVMBuildLoad2(s->b, type, LLVMBuildGEP2(s->b, s->i8, base, &index, 1, ""), "");
}

static void begin(Simt *s) { (void)s; }

static LLVMValueRef param(Simt *s, LLVMTypeRef type, int index)
{
    return load_field(s, LLVMGetParam(s->function, 1), type, sizeof(uint64_t) * (size_t)index);
}

static LLVMValueRef thread_id(Simt *s)
{
    return load_field(s, machine_thread(s), s->i32, offsetof(SimThread, index));
}

static LLVMValueRef program_id(Simt *s, int axis)
{
    return load_field(s, machine_thread(s), s->i32,
                      offsetof(SimThread, program) + sizeof(int32_t) * (size_t)axis);
}

static LLVMValueRef num_programs(Simt *s, int axis)
{
    return load_field(s, machine_thread(s), s->i32,
                      offsetof(SimThread, grid) + sizeof(int32_t) * (size_t)axis);
}

static void barrier(Simt *s)
{
    MACHINE(s, tt_sim_barrier, s->none, machine_thread(s), simt_i32(s, 0), simt_i32(s, 0), machine_site(s));
}

static void meet(Simt *s)
{
    LLVMValueRef threads = simt_i32(s, TT_LANES * tt_warps(s->options));
    MACHINE(s, tt_sim_barrier, s->none, machine_thread(s), simt_i32(s, 1), threads, machine_site(s));
}

static void warp_sync(Simt *s)
{
    MACHINE(s, tt_sim_warp_sync, s->none, machine_thread(s), simt_i32(s, -1), machine_site(s));
}

static LLVMValueRef clock_now(Simt *s) { return MACHINE(s, tt_sim_clock, s->i64, machine_thread(s)); }

static void releases(Simt *s) { MACHINE(s, tt_sim_release, s->none, machine_thread(s), machine_site(s)); }

/* Strips to come do what stands before it, which may come after it. */
static void acquired(Simt *s)
{
    LLVMValueRef site = machine_site(s), last = simt_is_last_strip(s);
    if (last)
        site = LLVMBuildSelect(s->b, last, site, LLVMConstNull(LLVMTypeOf(site)), "");
    MACHINE(s, tt_sim_acquired, s->none, machine_thread(s), site);
}

static LLVMValueRef shuffle(Simt *s, SimCollective mode, LLVMValueRef word, LLVMValueRef argument)
{
    LLVMValueRef wide = LLVMBuildZExt(s->b, word, s->i64, "");
    wide = MACHINE(s, tt_sim_shuffle, s->i64, machine_thread(s), simt_i32(s, mode), wide, argument,
                   machine_site(s));
    return LLVMBuildTrunc(s->b, wide, s->i32, "");
}

static LLVMValueRef shuffle_xor(Simt *s, LLVMValueRef word, int mask)
{
    return shuffle(s, SIM_SHUFFLE_XOR, word, simt_i32(s, mask));
}

static LLVMValueRef shuffle_index(Simt *s, LLVMValueRef word, LLVMValueRef lane)
{
    return shuffle(s, SIM_SHUFFLE_INDEX, word, lane);
}

static LLVMValueRef reduce_warp(Simt *s, Opcode opcode, LLVMValueRef word)
{
    (void)s, (void)opcode, (void)word;
    return NULL;
}

/* ---- memory ------------------------------------------------------------------------------------------------------------------ */

static LLVMValueRef address_of(Simt *s, const Access *access)
{
    LLVMValueRef address = access->space == GLOBAL_MEMORY
                               ? LLVMBuildPtrToInt(s->b, access->address, s->i64, "")
                               : LLVMBuildZExt(s->b, access->address, s->i64, "");
    return LLVMBuildAdd(s->b, address, simt_int(s->i64, access->offset), "");
}

static LLVMValueRef predicate_of(Simt *s, const Access *access)
{
    return access->predicate ? LLVMBuildZExt(s->b, access->predicate, s->i32, "") : simt_i32(s, 1);
}

static LLVMValueRef size_of(Simt *s, const Access *access)
{
    return simt_i32(s, access->word_bits / 8 * access->words);
}

/* Host memory to carry the access out on, as the machine gives it. */
static LLVMValueRef place(Simt *s, const Access *access, SimAccess kind)
{
    return MACHINE(s, tt_sim_access, host_ptr(s), machine_thread(s), simt_i32(s, access->space),
                   address_of(s, access), size_of(s, access), simt_i32(s, kind), predicate_of(s, access),
                   machine_site(s));
}

static LLVMValueRef word_at(Simt *s, LLVMValueRef base, const Access *access, int word)
{
    LLVMValueRef index = simt_int(s->i64, (int64_t)word * access->word_bits / 8);
    return LLVMBuildGEP2(s->b, s->i8, base, &index, 1, "");
}

static void load(Simt *s, const Access *access, LLVMValueRef const *other, LLVMValueRef *words)
{
    LLVMValueRef base = place(s, access, access->reads_around ? SIM_READ_AROUND : SIM_READ);
    for (int i = 0; i < access->words; i++) {
        words[i] = LLVMBuildLoad2(s->b, simt_int_type(s, access->word_bits), word_at(s, base, access, i), "");
        LLVMSetAlignment(words[i], 1);
        if (access->predicate && other)
            words[i] = LLVMBuildSelect(s->b, access->predicate, words[i], other[i], "");
    }
}

static void store(Simt *s, const Access *access, LLVMValueRef const *words)
{
    LLVMValueRef data = machine_scratch(s, 2);
    for (int i = 0; i < access->words; i++)
        LLVMBuildStore(s->b, words[i], word_at(s, data, access, i));
    MACHINE(s, tt_sim_store, s->none, machine_thread(s), simt_i32(s, access->space), address_of(s, access),
            size_of(s, access), simt_i32(s, SIM_WRITE), data, predicate_of(s, access), machine_site(s));
}

static bool has_atomic(const Simt *s, AtomicKind kind, TypeKind type)
{
    (void)s;
    if (kind == ATOMIC_FADD)
        return type == TT_F32 || type == TT_F64;
    return kind == ATOMIC_XCHG || kind == ATOMIC_CAS || (type >= TT_I16 && type <= TT_I64);
}

static LLVMValueRef atomic(Simt *s, const Atomic *atomic)
{
    static const LLVMAtomicRMWBinOp operations[ATOMIC_KINDS] = {
        [ATOMIC_ADD] = LLVMAtomicRMWBinOpAdd,    [ATOMIC_FADD] = LLVMAtomicRMWBinOpFAdd,
        [ATOMIC_MIN_S] = LLVMAtomicRMWBinOpMin,  [ATOMIC_MAX_S] = LLVMAtomicRMWBinOpMax,
        [ATOMIC_MIN_U] = LLVMAtomicRMWBinOpUMin, [ATOMIC_MAX_U] = LLVMAtomicRMWBinOpUMax,
        [ATOMIC_AND] = LLVMAtomicRMWBinOpAnd,    [ATOMIC_OR] = LLVMAtomicRMWBinOpOr,
        [ATOMIC_XOR] = LLVMAtomicRMWBinOpXor,    [ATOMIC_XCHG] = LLVMAtomicRMWBinOpXchg,
    };
    bool loads = atomic->kind == ATOMIC_LOAD;
    LLVMValueRef base = place(s, &atomic->access, loads ? SIM_ATOMIC_READ : SIM_ATOMIC);
    LLVMAtomicOrdering order = LLVMAtomicOrderingSequentiallyConsistent;
    if (loads || atomic->kind == ATOMIC_STORE) {
        LLVMValueRef access = loads ? LLVMBuildLoad2(s->b, LLVMTypeOf(atomic->value), base, "")
                                    : LLVMBuildStore(s->b, atomic->value, base);
        LLVMSetOrdering(access, order);
        LLVMSetAlignment(access, (unsigned)simt_bytes(LLVMTypeOf(atomic->value)));
        return loads ? access : NULL;
    }
    if (atomic->kind == ATOMIC_CAS) {
        LLVMValueRef compare = simt_to_bits(s, atomic->compare), value = simt_to_bits(s, atomic->value);
        LLVMValueRef both = LLVMBuildAtomicCmpXchg(s->b, base, compare, value, order, order, 0);
        return simt_from_bits(s, LLVMBuildExtractValue(s->b, both, 0, ""), LLVMTypeOf(atomic->value));
    }
    return LLVMBuildAtomicRMW(s->b, operations[atomic->kind], base, atomic->value, order, 0);
}

/* As wide as on a GPU, so that what is made of the masks is tested. */
static int widest_addition(const Simt *s, TypeKind type)
{
    return type == TT_F32 && s->options->sm >= 90 ? 4 : 1;
}

static void add_vector(Simt *s, const Atomic *vector, LLVMValueRef const *values, int count)
{
    for (int i = 0; i < count; i++) {
        Atomic one = *vector;
        int bytes = simt_bytes(LLVMTypeOf(values[i]));
        simt_set_words(&one.access, bytes);
        one.access.offset += (int64_t)i * bytes;
        one.value = values[i];
        atomic(s, &one);
    }
}

/* Its atomics are in one order for all threads. */
static void fence(Simt *s, const char *scope) { (void)s, (void)scope; }

/* ---- arithmetic ---------------------------------------------------------------------------------------------------------------- */

/* The function as ops.def says it, of f32 or f64. */
static LLVMValueRef fold(Simt *s, Opcode opcode, LLVMValueRef x)
{
    bool single = LLVMTypeOf(x) == s->f32;
    LLVMTypeRef type = single ? s->f32 : s->f64, parameters[] = {s->i32, type};
    intptr_t address = single ? (intptr_t)tt_eval_single : (intptr_t)tt_eval_double;
    LLVMValueRef function =
        LLVMConstIntToPtr(simt_int(s->i64, address), LLVMPointerTypeInContext(s->context, 0));
    LLVMValueRef arguments[] = {simt_i32(s, opcode), x};
    return LLVMBuildCall2(s->b, LLVMFunctionType(type, parameters, 2, 0), function, arguments, 2, "");
}

static LLVMValueRef library(Simt *s, const char *name, LLVMTypeRef result, LLVMValueRef const *operands,
                            int count)
{
    const char *symbol = tt_arena_format(s->arena, "%s%s", name, result == s->f32 ? "f" : "");
    Opcode opcode = tt_find_function_opcode(name);
    if (!tt_sim_symbol(symbol) && opcode < TT_OPCODES)
        return fold(s, opcode, operands[0]);
    if (!tt_sim_symbol(symbol))
        tt_unsupported(s->op ? s->op->loc : NULL, "the simulator has no function %s", symbol);
    return simt_call(s, symbol, result, operands, count);
}

static LLVMValueRef hide(Simt *s, LLVMValueRef word)
{
    (void)s;
    return word;
}

static LLVMValueRef move_pointer(Simt *s, LLVMValueRef pointer, LLVMValueRef offset, int64_t bytes)
{
    LLVMValueRef wide = LLVMBuildSExt(s->b, offset, s->i64, "");
    wide = LLVMBuildMul(s->b, wide, simt_int(s->i64, bytes), "");
    return LLVMBuildGEP2(s->b, s->i8, pointer, &wide, 1, "");
}

static LLVMValueRef advance(Simt *s, LLVMValueRef pointer, LLVMValueRef bytes)
{
    return LLVMBuildGEP2(s->b, s->i8, pointer, &bytes, 1, "");
}

static LLVMValueRef negate(Simt *s, LLVMValueRef x) { return LLVMBuildNeg(s->b, x, ""); }

/* f64 holds the product; where it was rounded away from zero, the next number toward it has the bits before. */
static LLVMValueRef multiply_toward_zero(Simt *s, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef product =
        LLVMBuildFMul(s->b, LLVMBuildFPExt(s->b, a, s->f64, ""), LLVMBuildFPExt(s->b, b, s->f64, ""), "");
    LLVMValueRef rounded = LLVMBuildFPTrunc(s->b, product, s->f32, "");
    LLVMValueRef size = simt_intrinsic1(s, "llvm.fabs", LLVMBuildFPExt(s->b, rounded, s->f64, ""));
    LLVMValueRef is_above =
        LLVMBuildFCmp(s->b, LLVMRealOGT, size, simt_intrinsic1(s, "llvm.fabs", product), "");
    LLVMValueRef bits = LLVMBuildBitCast(s->b, rounded, s->i32, "");
    bits = LLVMBuildSub(s->b, bits, LLVMBuildZExt(s->b, is_above, s->i32, ""), "");
    return LLVMBuildBitCast(s->b, bits, s->f32, "");
}

/* Of what is no number and another number, LLVM's maximum is the latter. */
static LLVMValueRef saturate(Simt *s, LLVMValueRef x)
{
    x = simt_intrinsic2(s, "llvm.maxnum", x, LLVMConstReal(s->f32, 0));
    return simt_intrinsic2(s, "llvm.minnum", x, LLVMConstReal(s->f32, 1));
}

/* What libm computes, or ops.def: nothing is approximated. */
static LLVMValueRef math(Simt *s, Opcode opcode, LLVMValueRef const *operands)
{
    (void)s, (void)opcode, (void)operands;
    return NULL;
}

static LLVMValueRef narrow(Simt *s, TypeKind to, LLVMValueRef const *values, int count, bool toward_zero)
{
    if (to == TT_F16 && !toward_zero && count == 1)
        return LLVMBuildFPTrunc(s->b, values[0], s->f16, "");
    return NULL;
}

static LLVMValueRef narrow_int(Simt *s, TypeKind to, LLVMValueRef x, bool is_signed)
{
    (void)s, (void)to, (void)x, (void)is_signed;
    return NULL;
}

static bool widen_fp8(Simt *s, TypeKind from, LLVMValueRef pair, LLVMValueRef *halves)
{
    (void)s, (void)from, (void)pair, (void)halves;
    return false;
}

/* ---- print and assert -------------------------------------------------------------------------------------------------------------- */

static void print(Simt *s, const char *format, LLVMValueRef const *arguments, int count)
{
    LLVMValueRef memory = machine_scratch(s, TT_MAX(count, 1));
    for (int i = 0; i < count; i++) {
        LLVMValueRef index = simt_int(s->i64, i), value = arguments[i];
        LLVMTypeRef type = LLVMTypeOf(value);
        if (LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) < 64)
            value = LLVMBuildSExt(s->b, value, s->i64, "");
        LLVMBuildStore(s->b, value, LLVMBuildGEP2(s->b, s->i64, memory, &index, 1, ""));
    }
    MACHINE(s, tt_sim_print, s->none, machine_thread(s), string_constant(s, format), memory);
}

static void stop_after_failure(Simt *s) { MACHINE(s, tt_sim_stop_after_failure, s->none, machine_thread(s)); }

static void fail(Simt *s, const Failure *failure, LLVMValueRef const values[2])
{
    MACHINE(s, tt_sim_fail_check, s->none, machine_thread(s), simt_i32(s, failure->kind),
            string_constant(s, failure->place), string_constant(s, failure->message), values[0], values[1]);
}

static LLVMValueRef assembly(Simt *s, const Assembly *a, LLVMValueRef const *operands, int count)
{
    (void)a, (void)operands, (void)count;
    tt_unsupported(s->op->loc, "inline assembly in the simulator, which does not read PTX");
}

const TargetOps tt_sim_ops = {
    .add_kernel = add_kernel,
    .begin = begin,
    .param = param,
    .thread_id = thread_id,
    .program_id = program_id,
    .num_programs = num_programs,
    .clock = clock_now,
    .barrier = barrier,
    .meet = meet,
    .warp_sync = warp_sync,
    .releases = releases,
    .acquired = acquired,
    .shuffle_xor = shuffle_xor,
    .shuffle_index = shuffle_index,
    .reduce_warp = reduce_warp,
    .load = load,
    .store = store,
    .has_atomic = has_atomic,
    .atomic = atomic,
    .widest_addition = widest_addition,
    .add_vector = add_vector,
    .fence = fence,
    .hide = hide,
    .move_pointer = move_pointer,
    .advance = advance,
    .negate = negate,
    .math = math,
    .multiply_toward_zero = multiply_toward_zero,
    .saturate = saturate,
    .library = library,
    .narrow = narrow,
    .narrow_int = narrow_int,
    .widen_fp8 = widen_fp8,
    .assembly = assembly,
    .print = print,
    .stop_after_failure = stop_after_failure,
    .fail = fail,
    .tensor = &tt_sim_tensor_ops,
    .async = &tt_sim_async_ops,
};
