/* The target's operations for NVIDIA GPUs: NVVM intrinsics where all LLVM versions spell them alike, inline PTX for the
 * rest. What communicates between threads is `convergent`, so that no pass moves it below a branch. */
#include "gpu/nvptx.h"

/* ---- inline PTX ------------------------------------------------------------------------------------------------------------------ */

static void add_attribute(Simt *s, LLVMValueRef call, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(s->context, kind, 0)); /* memory: 0 is none */
}

LLVMValueRef nvptx_asm(Simt *s, AsmKind kind, const char *text, const char *constraints, LLVMTypeRef result,
                       LLVMValueRef const *arguments, int count)
{
    LLVMTypeRef *types = TT_NEW_ARRAY(s->arena, LLVMTypeRef, count);
    bool is_pure = kind == ASM_PURE || kind == ASM_COLLECTIVE;
    for (int i = 0; i < count; i++)
        types[i] = LLVMTypeOf(arguments[i]);
    LLVMTypeRef function = LLVMFunctionType(result, types, (unsigned)count, 0);
    LLVMValueRef code = LLVMGetInlineAsm(function, text, strlen(text), constraints, strlen(constraints),
                                         !is_pure, 0, LLVMInlineAsmDialectATT, 0);
    LLVMValueRef call = LLVMBuildCall2(s->b, function, code, (LLVMValueRef *)arguments, (unsigned)count, "");
    add_attribute(s, call, "nounwind");
    if (is_pure) {
        add_attribute(s, call, "memory");
        add_attribute(s, call, "willreturn");
    }
    if (kind == ASM_CONVERGENT || kind == ASM_COLLECTIVE)
        add_attribute(s, call, "convergent");
    return call;
}

/* ---- the kernel --------------------------------------------------------------------------------------------------------------------- */

enum { PTX_KERNEL = 71 /* LLVM's calling convention */, SHARED_ALIGNMENT = 1024 };

/* i1 is passed as a byte. */
static LLVMTypeRef param_type(Simt *s, const Type *type)
{
    return tt_is_bool(type) ? s->i8 : simt_type(s, type);
}

static void add_shared_memory(Simt *s)
{
    s->shared = LLVMAddGlobalInAddressSpace(s->llvm, LLVMArrayType2(s->i8, 0), "shared", SHARED_MEMORY);
    LLVMSetLinkage(s->shared, LLVMExternalLinkage);
    LLVMSetAlignment(s->shared, SHARED_ALIGNMENT);
}

/* By value. */
static void pass_map(Simt *s, int index)
{
    enum { ALIGNMENT = 64 };
    unsigned by_value = LLVMGetEnumAttributeKindForName("byval", strlen("byval"));
    unsigned align = LLVMGetEnumAttributeKindForName("align", strlen("align"));
    LLVMTypeRef type = LLVMArrayType2(s->i8, MAP_BYTES);
    LLVMAttributeIndex place = (LLVMAttributeIndex)index + 1;
    LLVMAddAttributeAtIndex(s->function, place, LLVMCreateTypeAttribute(s->context, by_value, type));
    LLVMAddAttributeAtIndex(s->function, place, LLVMCreateEnumAttribute(s->context, align, ALIGNMENT));
}

static void add_kernel(Simt *s, const Function *function)
{
    const Region *body = function->body;
    LLVMTypeRef *params = TT_NEW_ARRAY(s->arena, LLVMTypeRef, body->arg_count + 1 + s->maps.count);
    int count = body->arg_count;
    for (int i = 0; i < body->arg_count; i++)
        params[i] = param_type(s, body->args[i]->type);
    if (s->options->debug)
        params[count++] = s->global_ptr; /* of the FailureRecord */
    for (int i = 0; i < s->maps.count; i++)
        params[count++] = LLVMPointerTypeInContext(s->context, 0);
    LLVMTypeRef type = LLVMFunctionType(s->none, params, (unsigned)count, 0);
    s->function = LLVMAddFunction(s->llvm, function->name, type);
    LLVMSetFunctionCallConv(s->function, PTX_KERNEL);
    for (int i = 0; i < s->maps.count; i++)
        pass_map(s, count - s->maps.count + i);
    const char *threads = tt_arena_format(s->arena, "%d", TT_LANES * tt_warps(s->options));
    simt_add_attribute(s, "nvvm.reqntid", threads);
    int programs = tt_wanted_programs(s->module, s->options);
    if (programs && !s->options->max_registers)
        simt_add_attribute(s, "nvvm.minctasm", tt_arena_format(s->arena, "%d", programs));
    if (s->options->max_registers) /* the driver's and ptxas's own option is a wish that they may exceed */
        simt_add_attribute(s, "nvvm.maxnreg", tt_arena_format(s->arena, "%d", s->options->max_registers));
    add_shared_memory(s);
}

static void find_wait(Op *op, void *context)
{
    bool *waits = context;
    const Attr *text = tt_find_attr(op, ATTR_text);
    *waits |= text && strstr(text->s, "griddepcontrol.wait");
}

/* Parameters are there, whatever the kernel before does. An early launch waits for what that kernel stores: where it
 * says so (tl.extra.cuda.gdc_wait) if that is to count, else first of all, and then saves just the time that setting
 * up its blocks takes. */
static void begin(Simt *s)
{
    bool waits = false;
    nvptx_prefetch_maps(s);
    if (s->options->waits_as_written)
        tt_walk(s->module->functions->body, find_wait, &waits);
    if (s->options->early && !waits)
        nvptx_asm(s, ASM_MEMORY, "griddepcontrol.wait;", "~{memory}", s->none, NULL, 0);
}

static LLVMValueRef param(Simt *s, LLVMTypeRef type, int index)
{
    (void)type;
    return LLVMGetParam(s->function, (unsigned)index);
}

/* ---- threads --------------------------------------------------------------------------------------------------------------------- */

static LLVMValueRef special_register(Simt *s, const char *name)
{
    const char *full = tt_arena_format(s->arena, "llvm.nvvm.read.ptx.sreg.%s", name);
    return simt_intrinsic(s, full, NULL, 0, NULL, 0);
}

static LLVMValueRef thread_id(Simt *s) { return special_register(s, "tid.x"); }

static LLVMValueRef program_id(Simt *s, int axis)
{
    static const char *const names[] = {"ctaid.x", "ctaid.y", "ctaid.z"};
    return special_register(s, names[axis]);
}

static LLVMValueRef num_programs(Simt *s, int axis)
{
    static const char *const names[] = {"nctaid.x", "nctaid.y", "nctaid.z"};
    return special_register(s, names[axis]);
}

static LLVMValueRef clock_now(Simt *s)
{
    return nvptx_asm(s, ASM_MEMORY, "mov.u64 $0, %globaltimer;", "=l", s->i64, NULL, 0);
}

static void barrier(Simt *s) { nvptx_asm(s, ASM_CONVERGENT, "bar.sync 0;", "~{memory}", s->none, NULL, 0); }

/* bar.sync is barrier.sync.aligned, which compute-sanitizer's synccheck wants to see all threads come to. */
static void meet(Simt *s)
{
    const char *text = tt_arena_format(s->arena, "barrier.sync 1, %d;", TT_LANES * tt_warps(s->options));
    nvptx_asm(s, ASM_CONVERGENT, text, "~{memory}", s->none, NULL, 0);
}

static void warp_sync(Simt *s)
{
    nvptx_asm(s, ASM_CONVERGENT, "bar.warp.sync 0xffffffff;", "~{memory}", s->none, NULL, 0);
}

static void fence(Simt *s, const char *scope)
{
    const char *text = tt_arena_format(s->arena, "fence.acq_rel.%s;", scope);
    nvptx_asm(s, ASM_MEMORY, text, "~{memory}", s->none, NULL, 0);
}

static LLVMValueRef shuffle(Simt *s, const char *name, LLVMValueRef word, LLVMValueRef lane)
{
    LLVMValueRef arguments[] = {simt_i32(s, -1), word, lane, simt_i32(s, TT_LANES - 1)};
    return simt_intrinsic(s, name, NULL, 0, arguments, 4);
}

static LLVMValueRef shuffle_xor(Simt *s, LLVMValueRef word, int mask)
{
    return shuffle(s, "llvm.nvvm.shfl.sync.bfly.i32", word, simt_i32(s, mask));
}

static LLVMValueRef shuffle_index(Simt *s, LLVMValueRef word, LLVMValueRef lane)
{
    return shuffle(s, "llvm.nvvm.shfl.sync.idx.i32", word, lane);
}

static LLVMValueRef reduce_warp(Simt *s, Opcode opcode, LLVMValueRef word)
{
    static const char *const names[TT_OPCODES] = {
        [OP_add] = "add",    [OP_min_s] = "min", [OP_max_s] = "max", [OP_min_u] = "umin",
        [OP_max_u] = "umax", [OP_and] = "and",   [OP_or] = "or",     [OP_xor] = "xor"};
    if (s->options->sm < 80 || !names[opcode])
        return NULL;
    const char *name = tt_arena_format(s->arena, "llvm.nvvm.redux.sync.%s", names[opcode]);
    return simt_intrinsic(s, name, NULL, 0, (LLVMValueRef[]){word, simt_i32(s, -1)}, 2);
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------------------------- */

static const Op *loop_of(const Region *region)
{
    const Op *op = region ? region->op : NULL;
    return !op || tt_is_loop(op) ? op : loop_of(op->parent);
}

static const Op *loop_of_value(const Value *value)
{
    return loop_of(value->op ? value->op->parent : value->region);
}

/* Of `pointers + offsets`: are the offsets from outside of the loop, and those of other pointers in it? */
static bool shares_offset_from_outside(const Op *op, const Op *loop)
{
    if (op->opcode != OP_addptr || loop_of_value(tt_operand(op, 1)) == loop)
        return false;
    int pointers = 0;
    for (const Use *use = tt_operand(op, 1)->uses; use; use = use->next)
        pointers += use->user->opcode == OP_addptr && loop_of(use->user->parent) == loop;
    return pointers > 1;
}

static bool has_products(const Op *loop)
{
    bool found = false;
    for (int i = 0; i < loop->region_count; i++)
        found |= tt_has_products(loop->regions[i]);
    return found;
}

static LLVMValueRef bytes_of(Simt *s, LLVMValueRef offset, int64_t bytes)
{
    offset = LLVMBuildSExt(s->b, offset, s->i64, "");
    return LLVMBuildMul(s->b, offset, simt_int(s->i64, bytes), "");
}

/* The same, computed right behind the offset. */
static LLVMValueRef bytes_behind(Simt *s, LLVMValueRef offset, int64_t bytes)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(s->b);
    LLVMValueRef next = LLVMGetNextInstruction(offset);
    while (next && LLVMGetInstructionOpcode(next) == LLVMPHI)
        next = LLVMGetNextInstruction(next);
    if (next) /* NULL: it ends the block that is under way */
        LLVMPositionBuilderBefore(s->b, next);
    offset = bytes_of(s, offset, bytes);
    LLVMPositionBuilderAtEnd(s->b, here);
    return offset;
}

/* Are these pointers of places that a table says, from which registers are loaded? */
static bool is_gather(const Simt *s, const Op *op)
{
    if (op->opcode != OP_addptr)
        return false;
    TT_FOR_USES(use, op->results[0])
    if (use->user->opcode != OP_load)
        return false;
    const AxisInfo *info = tt_axis_info(s->axis_infos, op->results[0]);
    for (int i = 0; i < info->rank; i++)
        if (info->looked_up[i])
            return true;
    return false;
}

/* A wide product and a sum: where several arrays have one offset, ptxas keeps the offset in 32 bits and has registers
 * left for loads. Of loops with these two it makes worse code than with one instruction, which LLVM 22 does not make of
 * them: it unrolls, but without issuing the loads of several iterations together. But an offset that several pointers of
 * a loop share, which alone change there, is multiplied in front of it: ptxas would keep it both in 32 bits and in 64, and
 * wait between the loads of an iteration for lack of registers (states passed from chunk to chunk, 0.88 of the peer).
 * Loops with products have no registers for that. Where they gather into registers, ptxas had better have the two: it makes
 * a wide multiply-add of them for each element, but four instructions of the one. */
static LLVMValueRef move_pointer(Simt *s, LLVMValueRef pointer, LLVMValueRef offset, int64_t bytes)
{
    const Op *loop = loop_of(s->op->parent);
    bool is_ready =
        loop && LLVMIsAInstruction(offset) && shares_offset_from_outside(s->op, loop) && !has_products(loop);
    if (!loop || is_ready || (has_products(loop) && is_gather(s, s->op))) {
        offset = is_ready ? bytes_behind(s, offset, bytes) : bytes_of(s, offset, bytes);
        return LLVMBuildGEP2(s->b, s->i8, pointer, &offset, 1, "");
    }
    const char *text = tt_arena_format(s->arena, "mad.wide.s32 $0, $1, %lld, $2;", (long long)bytes);
    offset = LLVMBuildSExt(s->b, offset, s->i32, "");
    return nvptx_asm(s, ASM_PURE, text, "=l,r,l", s->global_ptr, (LLVMValueRef[]){offset, pointer}, 2);
}

static LLVMValueRef hide(Simt *s, LLVMValueRef word)
{
    return nvptx_asm(s, ASM_PURE, "mov.b32 $0, $1;", "=r,r", s->i32, &word, 1);
}

/* In halves, so that it stays an addition: LLVM would carry one distance for all pointers, and ptxas would multiply the
 * distance by the size of an element in each iteration. Multiplications take ports of the register file that tensor cores
 * need for their sums. */
static LLVMValueRef advance(Simt *s, LLVMValueRef pointer, LLVMValueRef bytes)
{
    LLVMValueRef high = LLVMBuildLShr(s->b, bytes, simt_int(s->i64, 32), "");
    LLVMValueRef arguments[] = {pointer, LLVMBuildTrunc(s->b, bytes, s->i32, ""),
                                LLVMBuildTrunc(s->b, high, s->i32, "")};
    const char *text = "{ .reg .b32 l, h; mov.b64 {l, h}, $1; add.cc.u32 l, l, $2; addc.u32 h, h, $3; "
                       "mov.b64 $0, {l, h}; }";
    return nvptx_asm(s, ASM_PURE, text, "=l,l,r,r", s->global_ptr, arguments, 3);
}

/* ptxas 13.0 for sm_90 loses the minus of an operand when it makes one VIMNMX3 of two minima (or maxima) of negated
 * integers, so it must not see a negation there, nor in older code, which may come to run there too. */
static LLVMValueRef negate(Simt *s, LLVMValueRef x)
{
    bool in_danger = s->options->sm < 100 && LLVMTypeOf(x) == s->i32;
    if (!in_danger || LLVMIsConstant(x))
        return LLVMBuildNeg(s->b, x, "");
    const char *text = "{ .reg .b32 t; not.b32 t, $1; add.s32 $0, t, 1; }";
    return nvptx_asm(s, ASM_PURE, text, "=r,r", s->i32, &x, 1);
}

/* Denormal results of ex2 become 0 (.ftz): without that it is four instructions. */
static LLVMValueRef math(Simt *s, Opcode opcode, LLVMValueRef const *operands)
{
    static const struct {
        const char *single, *wide; /* of f32, of f64 */
    } spellings[TT_OPCODES] = {
        [OP_fdiv] = {"div.full.f32 $0, $1, $2;", NULL},  [OP_sqrt] = {"sqrt.approx.f32 $0, $1;", NULL},
        [OP_rsqrt] = {"rsqrt.approx.f32 $0, $1;", NULL}, [OP_exp2] = {"ex2.approx.ftz.f32 $0, $1;", NULL},
        [OP_log2] = {"lg2.approx.f32 $0, $1;", NULL},
    };
    LLVMTypeRef type = LLVMTypeOf(operands[0]);
    bool single = type == s->f32, two = tt_op_infos[opcode].operands_min == 2;
    const char *text = single ? spellings[opcode].single : spellings[opcode].wide;
    const char *constraints = single ? (two ? "=f,f,f" : "=f,f") : two ? "=d,d,d" : "=d,d";
    return text ? nvptx_asm(s, ASM_PURE, text, constraints, type, operands, two ? 2 : 1) : NULL;
}

static LLVMValueRef multiply_toward_zero(Simt *s, LLVMValueRef a, LLVMValueRef b)
{
    return nvptx_asm(s, ASM_PURE, "mul.rz.f32 $0, $1, $2;", "=f,f,f", s->f32, (LLVMValueRef[]){a, b}, 2);
}

static LLVMValueRef saturate(Simt *s, LLVMValueRef x)
{
    return nvptx_asm(s, ASM_PURE, "cvt.sat.f32.f32 $0, $1;", "=f,f", s->f32, &x, 1);
}

/* What LLVM computes without libdevice. */
static const char *intrinsic_for(const char *name)
{
    static const char *const known[][2] = {{"rint", "llvm.rint"},
                                           {"trunc", "llvm.trunc"},
                                           {"copysign", "llvm.copysign"},
                                           {"fma", "llvm.fma"},
                                           {"round", "llvm.round"}};
    for (size_t i = 0; i < TT_COUNT(known); i++)
        if (!strcmp(known[i][0], name))
            return known[i][1];
    return NULL;
}

static LLVMValueRef library(Simt *s, const char *name, LLVMTypeRef result, LLVMValueRef const *operands,
                            int count)
{
    const char *intrinsic = intrinsic_for(name);
    if (intrinsic)
        return simt_intrinsic(s, intrinsic, &result, 1, operands, count);
    const char *symbol = tt_arena_format(s->arena, "__nv_%s%s", name, result == s->f32 ? "f" : "");
    LLVMTypeRef types[4];
    for (int i = 0; i < count; i++)
        types[i] = LLVMTypeOf(operands[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, (unsigned)count, 0);
    LLVMValueRef function = LLVMGetNamedFunction(s->llvm, symbol);
    if (!function)
        function = LLVMAddFunction(s->llvm, symbol, type);
    return LLVMBuildCall2(s->b, type, function, (LLVMValueRef *)operands, (unsigned)count, "");
}

/* ---- narrow floats ---------------------------------------------------------------------------------------------------------------- */

static const char *fp8_name(const Simt *s, TypeKind kind)
{
    if (s->options->sm < 89)
        return NULL;
    return kind == TT_F8E4M3 ? "e4m3x2" : kind == TT_F8E5M2 ? "e5m2x2" : NULL;
}

static LLVMValueRef narrow_to_fp8(Simt *s, const char *name, LLVMValueRef const *values, int count)
{
    LLVMValueRef both[] = {values[0], count > 1 ? values[1] : LLVMConstNull(s->f32)};
    const char *text = tt_arena_format(s->arena, "cvt.rn.satfinite.%s.f32 $0, $2, $1;", name);
    LLVMValueRef pair = nvptx_asm(s, ASM_PURE, text, "=h,f,f", s->i16, both, 2);
    return count > 1 ? LLVMBuildBitCast(s->b, pair, LLVMVectorType(s->i8, 2), "")
                     : LLVMBuildTrunc(s->b, pair, s->i8, "");
}

static LLVMValueRef truncate_floats(Simt *s, LLVMTypeRef type, LLVMValueRef const *values, int count)
{
    if (count == 1)
        return LLVMBuildFPTrunc(s->b, values[0], type, "");
    LLVMValueRef vector = LLVMGetPoison(LLVMVectorType(s->f32, 2));
    for (int i = 0; i < 2; i++)
        vector = LLVMBuildInsertElement(s->b, vector, values[i], simt_i32(s, i), "");
    return LLVMBuildFPTrunc(s->b, vector, LLVMVectorType(type, 2), "");
}

static LLVMValueRef narrow(Simt *s, TypeKind to, LLVMValueRef const *values, int count, bool toward_zero)
{
    const char *fp8 = fp8_name(s, to);
    if (toward_zero && to == TT_F16 && count == 1) {
        LLVMValueRef bits = nvptx_asm(s, ASM_PURE, "cvt.rz.f16.f32 $0, $1;", "=h,f", s->i16, values, 1);
        return LLVMBuildBitCast(s->b, bits, s->f16, "");
    }
    if (toward_zero)
        return NULL;
    if (fp8)
        return narrow_to_fp8(s, fp8, values, count);
    if (to == TT_F16 || (to == TT_BF16 && s->options->sm >= 80))
        return truncate_floats(s, to == TT_F16 ? s->f16 : s->bf16, values, count);
    return NULL;
}

static LLVMValueRef narrow_int(Simt *s, TypeKind to, LLVMValueRef x, bool is_signed)
{
    bool is_long = LLVMTypeOf(x) == s->i64;
    if (to == TT_F16)
        return (is_signed ? LLVMBuildSIToFP : LLVMBuildUIToFP)(s->b, x, s->f16, "");
    if (to != TT_BF16 || s->options->sm < 90)
        return NULL;
    const char *text =
        tt_arena_format(s->arena, "cvt.rn.bf16.%c%d $0, $1;", is_signed ? 's' : 'u', is_long ? 64 : 32);
    LLVMValueRef bits = nvptx_asm(s, ASM_PURE, text, is_long ? "=h,l" : "=h,r", s->i16, &x, 1);
    return LLVMBuildBitCast(s->b, bits, s->bf16, "");
}

static bool widen_fp8(Simt *s, TypeKind from, LLVMValueRef pair, LLVMValueRef *halves)
{
    const char *fp8 = fp8_name(s, from);
    if (!fp8)
        return false;
    const char *text = tt_arena_format(s->arena, "cvt.rn.f16x2.%s $0, $1;", fp8);
    LLVMValueRef both = nvptx_asm(s, ASM_PURE, text, "=r,h", s->i32, &pair, 1);
    both = LLVMBuildBitCast(s->b, both, LLVMVectorType(s->f16, 2), "");
    for (int i = 0; i < 2; i++)
        halves[i] = LLVMBuildExtractElement(s->b, both, simt_i32(s, i), "");
    return true;
}

/* ---- print and assert --------------------------------------------------------------------------------------------------------------- */

/* A string in global memory, as a generic pointer. */
static LLVMValueRef string_constant(Simt *s, const char *text)
{
    return LLVMConstAddrSpaceCast(simt_string(s, text, GLOBAL_MEMORY),
                                  LLVMPointerTypeInContext(s->context, 0));
}

/* vprintf reads its arguments from a block of memory, each aligned to its size (CUDA C++ Programming Guide, "Formatted
 * Output"). */
static void print(Simt *s, const char *format, LLVMValueRef const *arguments, int count)
{
    LLVMValueRef memory = simt_new_array(s, s->i64, TT_MAX(count, 1));
    int64_t offset = 0;
    for (int i = 0; i < count; i++) {
        int bytes = simt_bytes(LLVMTypeOf(arguments[i]));
        offset = (offset + bytes - 1) / bytes * bytes;
        LLVMValueRef index = simt_int(s->i64, offset);
        LLVMBuildStore(s->b, arguments[i], LLVMBuildGEP2(s->b, s->i8, memory, &index, 1, ""));
        offset += bytes;
    }
    simt_call(s, "vprintf", s->i32, (LLVMValueRef[]){string_constant(s, format), memory}, 2);
}

static LLVMValueRef record_field(Simt *s, LLVMValueRef record, size_t offset)
{
    LLVMValueRef index = simt_int(s->i64, (int64_t)offset);
    return LLVMBuildGEP2(s->b, s->i8, record, &index, 1, "");
}

static LLVMValueRef failure_record(const Simt *s)
{
    return LLVMGetParam(s->function, LLVMCountParams(s->function) - 1);
}

static void stop_after_failure(Simt *s)
{
    LLVMValueRef failed = LLVMBuildLoad2(s->b, s->i32, failure_record(s), "");
    LLVMSetVolatile(failed, 1);
    LLVMBasicBlockRef end = simt_new_block(s, "end"), go_on = simt_new_block(s, "");
    LLVMBuildCondBr(s->b, LLVMBuildIsNotNull(s->b, failed, ""), end, go_on);
    LLVMPositionBuilderAtEnd(s->b, end);
    nvptx_asm(s, ASM_MEMORY, "exit;", "~{memory}", s->none, NULL, 0);
    LLVMBuildBr(s->b, go_on);
    LLVMPositionBuilderAtEnd(s->b, go_on);
}

/* As an assertion of CUDA C++ does: the driver prints the message, and the context takes no more work. */
static void end_context(Simt *s, const Failure *failure)
{
    LLVMValueRef arguments[] = {
        string_constant(s, failure->message), string_constant(s, failure->place), simt_i32(s, 0),
        string_constant(s, LLVMGetValueName2(s->function, &(size_t){0})), simt_int(s->i64, 1)};
    simt_call(s, "__assertfail", s->none, arguments, TT_COUNT(arguments));
}

/* Fills in the FailureRecord if this thread is the first one, and ends the thread. A trap would end the context of
 * every library in the process instead: that is for kernels whose launches are not ours. */
static void fail(Simt *s, const Failure *failure, LLVMValueRef const values[2])
{
    if (!s->options->debug) {
        end_context(s, failure);
        return;
    }
    tt_push(s->arena, s->failures, *failure);
    LLVMValueRef record = failure_record(s);
    LLVMAtomicOrdering order = LLVMAtomicOrderingMonotonic;
    LLVMValueRef both =
        LLVMBuildAtomicCmpXchg(s->b, record, simt_i32(s, 0), simt_i32(s, s->failures.count), order, order, 0);
    LLVMBasicBlockRef first = simt_new_block(s, "first"), end = simt_new_block(s, "end");
    LLVMBuildCondBr(s->b, LLVMBuildExtractValue(s->b, both, 1, ""), first, end);
    LLVMPositionBuilderAtEnd(s->b, first);
    for (int axis = 0; axis < 3; axis++) {
        size_t offset = offsetof(FailureRecord, program) + sizeof(int32_t) * (size_t)axis;
        LLVMBuildStore(s->b, program_id(s, axis), record_field(s, record, offset));
    }
    for (int i = 0; i < 2; i++) {
        size_t offset = offsetof(FailureRecord, values) + sizeof(int64_t) * (size_t)i;
        LLVMBuildStore(s->b, values[i], record_field(s, record, offset));
    }
    LLVMBuildBr(s->b, end);
    LLVMPositionBuilderAtEnd(s->b, end);
    nvptx_asm(s, ASM_MEMORY, "exit;", "~{memory}", s->none, NULL, 0);
}

/* What the user wrote may shuffle or wait, so even what is pure stays where all threads come by. */
static LLVMValueRef assembly(Simt *s, const Assembly *a, LLVMValueRef const *operands, int count)
{
    AsmKind kind = a->has_effect ? ASM_CONVERGENT : ASM_PURE;
    LLVMValueRef call = nvptx_asm(s, kind, a->text, a->constraints, a->result, operands, count);
    add_attribute(s, call, "convergent");
    return call;
}

const TargetOps tt_nvptx_ops = {
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
    .shuffle_xor = shuffle_xor,
    .shuffle_index = shuffle_index,
    .reduce_warp = reduce_warp,
    .load = nvptx_load,
    .store = nvptx_store,
    .has_atomic = nvptx_has_atomic,
    .atomic = nvptx_atomic,
    .widest_addition = nvptx_widest_addition,
    .add_vector = nvptx_add_vector,
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
    .tensor = &tt_nvptx_tensor_ops,
    .async = &tt_nvptx_async_ops,
};
