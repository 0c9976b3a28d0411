/* Tensor cores and asynchronous copies in PTX. */
#include "gpu/nvptx.h"

static LLVMTypeRef struct_of(Simt *s, LLVMTypeRef type, int count)
{
    LLVMTypeRef *types = TT_NEW_ARRAY(s->arena, LLVMTypeRef, count);
    for (int i = 0; i < count; i++)
        types[i] = type;
    return LLVMStructTypeInContext(s->context, types, (unsigned)count, 0);
}

static void take_apart(Simt *s, LLVMValueRef result, int count, LLVMValueRef *values)
{
    for (int i = 0; i < count; i++)
        values[i] = count == 1 ? result : LLVMBuildExtractValue(s->b, result, (unsigned)i, "");
}

/* "$first, $first+1, ..." in braces. */
static void add_list(Text *text, int first, int count)
{
    for (int i = 0; i < count; i++)
        tt_text_add(text, "%s$%d", i ? ", " : "{", first + i);
    tt_text_add_n(text, "}", 1);
}

static void add_constraints(Text *text, const char *constraint, int count)
{
    for (int i = 0; i < count; i++)
        tt_text_add(text, "%s%s", text->length ? "," : "", constraint);
}

/* Inputs that share the registers of the first `count` outputs. */
static void add_tied(Text *text, int count)
{
    for (int i = 0; i < count; i++)
        tt_text_add(text, ",%d", i);
}

static const char *type_name(TypeKind kind)
{
    switch (kind) {
    case TT_F16:
        return "f16";
    case TT_BF16:
        return "bf16";
    case TT_F32:
        return "tf32";
    case TT_I8:
        return "s8";
    case TT_F8E4M3:
        return "e4m3";
    case TT_F8E5M2:
        return "e5m2";
    case TT_F64:
        return "f64";
    default:
        tt_bug("tensor cores do not multiply %s", tt_type_name(kind));
    }
}

static const char *sum_name(TypeKind kind)
{
    return kind == TT_I32 ? "s32" : kind == TT_F64 ? "f64" : kind == TT_F16 ? "f16" : "f32";
}

static const char *sum_constraint(TypeKind kind)
{
    return kind == TT_I32 || kind == TT_F16 ? "r" : kind == TT_F64 ? "d" : "f";
}

/* ---- matrices in shared memory ----------------------------------------------------------------------------------------------------- */

static void load_matrices(Simt *s, LLVMValueRef place, int64_t constant, int count, bool transposed,
                          LLVMValueRef *words)
{
    Text text = {.arena = s->arena}, constraints = {.arena = s->arena};
    tt_text_add(&text, "ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 ", count, transposed ? ".trans" : "");
    add_list(&text, 0, count);
    tt_text_add(&text, ", [$%d+%lld];", count, (long long)constant);
    add_constraints(&constraints, "=r", count);
    tt_text_add(&constraints, ",r,~{memory}");
    LLVMValueRef address = nvptx_shared_address(s, place);
    LLVMTypeRef type = count == 1 ? s->i32 : struct_of(s, s->i32, count);
    take_apart(s, nvptx_asm(s, ASM_CONVERGENT, text.data, constraints.data, type, &address, 1), count, words);
}

static void store_matrices(Simt *s, LLVMValueRef place, int64_t constant, int count, bool transposed,
                           LLVMValueRef const *words)
{
    Text text = {.arena = s->arena}, constraints = {.arena = s->arena};
    tt_text_add(&text, "stmatrix.sync.aligned.m8n8.x%d%s.shared.b16 [$0+%lld], ", count,
                transposed ? ".trans" : "", (long long)constant);
    add_list(&text, 1, count);
    tt_text_add(&text, ";");
    add_constraints(&constraints, "r", count + 1);
    tt_text_add(&constraints, ",~{memory}");
    LLVMValueRef arguments[5] = {nvptx_shared_address(s, place)};
    memcpy(arguments + 1, words, sizeof(LLVMValueRef) * (size_t)count);
    nvptx_asm(s, ASM_CONVERGENT, text.data, constraints.data, s->none, arguments, count + 1);
}

static bool has_store_matrices(const Simt *s) { return s->options->sm >= 90; }

/* ---- mma.sync ------------------------------------------------------------------------------------------------------------------------ */

/* One instruction m x 8 x k with so many registers of a, b and the sums, of which fp16 has two in one. */
typedef struct Shape {
    int m, k, a, b, sums;
} Shape;

static void one_mma(Simt *s, const Mma *mma, Shape shape, LLVMValueRef const *a, LLVMValueRef const *b,
                    LLVMValueRef *sums)
{
    Text text = {.arena = s->arena}, constraints = {.arena = s->arena};
    const char *sum = sum_name(mma->sum), *constraint = sum_constraint(mma->sum);
    bool is_double = mma->sum == TT_F64;
    if (mma->sum == TT_F16)
        shape.sums /= 2;
    tt_text_add(&text, "mma.sync.aligned.m%dn8k%d.row.col%s.%s.%s.%s.%s ", shape.m, shape.k,
                mma->sum == TT_I32 ? ".satfinite" : "", sum, type_name(mma->a), type_name(mma->b), sum);
    add_list(&text, 0, shape.sums);
    tt_text_add(&text, ", ");
    add_list(&text, 2 * shape.sums, shape.a);
    tt_text_add(&text, ", ");
    add_list(&text, 2 * shape.sums + shape.a, shape.b);
    tt_text_add(&text, ", ");
    add_list(&text, shape.sums, shape.sums);
    tt_text_add(&text, ";");
    add_constraints(&constraints, tt_arena_format(s->arena, "=%s", constraint), shape.sums);
    add_tied(&constraints, shape.sums);
    add_constraints(&constraints, is_double ? "d" : "r", shape.a + shape.b);
    LLVMValueRef arguments[10];
    int count = 0;
    for (int i = 0; i < shape.sums; i++)
        arguments[count++] = sums[i];
    for (int i = 0; i < shape.a; i++)
        arguments[count++] = a[i];
    for (int i = 0; i < shape.b; i++)
        arguments[count++] = b[i];
    LLVMTypeRef type = struct_of(s, LLVMTypeOf(sums[0]), shape.sums);
    take_apart(s, nvptx_asm(s, ASM_COLLECTIVE, text.data, constraints.data, type, arguments, count),
               shape.sums, sums);
}

/* Halves of K, and of M where the instruction has eight rows, one after the other: fragments of larger shapes are those of
 * smaller ones side by side. */
static void mma_in_parts(Simt *s, const Mma *mma, Shape part, LLVMValueRef const *a, LLVMValueRef const *b,
                         LLVMValueRef *sums)
{
    for (int half = 0; half < 2; half++)
        if (part.m == 16)
            one_mma(s, mma, part, a + 2 * half, b + half, sums);
        else
            for (int rows = 0; rows < 2; rows++)
                one_mma(s, mma, part, a + 2 * half + rows, b + half, sums + 2 * rows);
}

/* Datacenter GPUs from 9.0 on multiply 8-bit floats by wgmma and its successors alone. ptxas makes two products of 16-bit
 * floats of one, whose sum it then adds to the sums; made here, the products add it themselves. */
static bool widens_fp8(const Simt *s, const Mma *mma)
{
    return s->options->sm >= 90 && s->options->sm < 120 && (mma->a == TT_F8E4M3 || mma->a == TT_F8E5M2);
}

/* Words of four 8-bit floats as 16-bit ones: the lower pairs of all, then the upper ones. */
static void widen_fp8(Simt *s, TypeKind kind, LLVMValueRef const *words, int count, LLVMValueRef *pairs)
{
    const char *text = tt_arena_format(s->arena,
                                       "{\n.reg .b16 %%low, %%high;\nmov.b32 {%%low, %%high}, $2;\n"
                                       "cvt.rn.f16x2.%sx2 $0, %%low;\ncvt.rn.f16x2.%sx2 $1, %%high;\n}",
                                       type_name(kind), type_name(kind));
    for (int i = 0; i < count; i++) {
        LLVMValueRef both[2];
        take_apart(s, nvptx_asm(s, ASM_PURE, text, "=r,=r,r", struct_of(s, s->i32, 2), &words[i], 1), 2,
                   both);
        pairs[i] = both[0];
        pairs[count + i] = both[1];
    }
}

/* Of K any elements may be multiplied first, the same ones of both operands. */
static void mma_widened(Simt *s, const Mma *mma, LLVMValueRef const *a, LLVMValueRef const *b,
                        LLVMValueRef *sums)
{
    LLVMValueRef wide_a[8], wide_b[4];
    widen_fp8(s, mma->a, a, 4, wide_a);
    widen_fp8(s, mma->b, b, 2, wide_b);
    const Mma wide = {TT_F16, TT_F16, mma->sum};
    for (int half = 0; half < 2; half++)
        one_mma(s, &wide, (Shape){16, 16, 4, 2, 4}, wide_a + 4 * half, wide_b + 2 * half, sums);
}

static void mma(Simt *s, const Mma *mma, LLVMValueRef const *a, LLVMValueRef const *b, LLVMValueRef *sums)
{
    int k = mma->a == TT_F32 ? 8 : mma->a == TT_F16 || mma->a == TT_BF16 ? 16 : 32;
    if (mma->a == TT_F64)
        mma_in_parts(s, mma, (Shape){8, 4, 1, 1, 2}, a, b, sums);
    else if (s->options->sm < 80 && mma->a == TT_I8)
        mma_in_parts(s, mma, (Shape){8, 16, 1, 1, 2}, a, b, sums);
    else if (s->options->sm < 80)
        mma_in_parts(s, mma, (Shape){16, 8, 2, 1, 4}, a, b, sums);
    else if (widens_fp8(s, mma))
        mma_widened(s, mma, a, b, sums);
    else
        one_mma(s, mma, (Shape){16, k, 4, 2, 4}, a, b, sums);
}

/* ---- wgmma --------------------------------------------------------------------------------------------------------------------------- */

static void order(Simt *s, const char *text)
{
    nvptx_asm(s, ASM_CONVERGENT, text, "~{memory}", s->none, NULL, 0);
}

static void wgmma_begin(Simt *s) { order(s, "wgmma.fence.sync.aligned;"); }

/* ptxas computes what was computed from sums once more where it is used, behind products that add to the same registers too,
 * which it then takes for the same sums (13.0; acc = dot(a, b, acc); x = f(acc); acc = dot(a, b, acc); y = f(acc); z += x: z
 * got y). Out of LLVM's sight, which would use one register for both. */
static void wgmma_move(Simt *s, LLVMValueRef *sums, int count)
{
    for (int i = 0; i < count; i++) {
        bool is_integer = LLVMGetTypeKind(LLVMTypeOf(sums[i])) == LLVMIntegerTypeKind;
        sums[i] = nvptx_asm(s, ASM_PURE, "mov.b32 $0, $1;", is_integer ? "=&r,r" : "=&f,f",
                            LLVMTypeOf(sums[i]), &sums[i], 1);
    }
}

static void wgmma_commit(Simt *s) { order(s, "wgmma.commit_group.sync.aligned;"); }

static LLVMValueRef shared_base(Simt *s) { return LLVMBuildPtrToInt(s->b, s->shared, s->i32, ""); }

static bool is_byte_wide(TypeKind kind) { return kind == TT_I8 || kind == TT_F8E4M3 || kind == TT_F8E5M2; }

/* One instruction; `a` and `b`: numbers of its operands. */
static void add_wgmma(Text *text, const Wgmma *w, int a, int b, bool adds)
{
    int k = is_byte_wide(w->a) ? 32 : w->a == TT_F32 ? 8 : 16;
    tt_text_add(text, "wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s ", w->n, k, sum_name(w->sum),
                type_name(w->a), type_name(w->b));
    add_list(text, 0, tt_wgmma_sums(w));
    tt_text_add(text, ", ");
    if (w->a_words)
        add_list(text, a, 4);
    else
        tt_text_add(text, "$%d", a);
    tt_text_add(text, ", $%d, %d", b, adds);
    if (w->sum != TT_I32)
        tt_text_add(text, ", 1, 1");
    if (w->a == TT_F16 || w->a == TT_BF16) {
        if (!w->a_words)
            tt_text_add(text, ", %d", w->a_is_transposed);
        tt_text_add(text, ", %d", w->b_is_transposed);
    }
    tt_text_add(text, ";\n");
}

/* The steps are one piece of assembly: LLVM takes the sums apart once, which is most of its work on them. It writes the sums
 * before it has read the operands of the later steps. */
static void wgmma(Simt *s, const Wgmma *w)
{
    Text text = {.arena = s->arena}, constraints = {.arena = s->arena};
    int count = tt_wgmma_sums(w), a_size = w->a_words ? 4 : 1, a = 2 * count, b = a + a_size * w->steps;
    LLVMValueRef *arguments = TT_NEW_ARRAY(s->arena, LLVMValueRef, b - count + w->steps);
    for (int i = 0; i < w->steps; i++)
        add_wgmma(&text, w, a + a_size * i, b + i, i || w->adds);
    add_constraints(&constraints, tt_arena_format(s->arena, "=&%s", sum_constraint(w->sum)), count);
    add_tied(&constraints, count);
    add_constraints(&constraints, w->a_words ? "r" : "l", a_size * w->steps);
    add_constraints(&constraints, "l", w->steps);
    memcpy(arguments, w->sums, sizeof(LLVMValueRef) * (size_t)count);
    memcpy(arguments + count, w->a_words ? w->a_words : w->a_matrices,
           sizeof(LLVMValueRef) * (size_t)(a_size * w->steps));
    memcpy(arguments + b - count, w->b_matrices, sizeof(LLVMValueRef) * (size_t)w->steps);
    LLVMTypeRef type = struct_of(s, LLVMTypeOf(w->sums[0]), count);
    take_apart(
        s, nvptx_asm(s, ASM_CONVERGENT, text.data, constraints.data, type, arguments, b - count + w->steps),
        count, w->sums);
}

/* What the sums become stands behind the wait, so that nothing reads them before it. Those of groups that stay in flight
 * are not touched. */
static void wgmma_wait(Simt *s, int left, LLVMValueRef *sums, int count)
{
    const char *text = tt_arena_format(s->arena, "wgmma.wait_group.sync.aligned %d;", left);
    if (left) {
        order(s, text);
        return;
    }
    Text constraints = {.arena = s->arena};
    add_constraints(&constraints, LLVMTypeOf(sums[0]) == s->i32 ? "=r" : "=f", count);
    add_tied(&constraints, count);
    tt_text_add(&constraints, ",~{memory}");
    LLVMTypeRef type = count == 1 ? LLVMTypeOf(sums[0]) : struct_of(s, LLVMTypeOf(sums[0]), count);
    take_apart(s, nvptx_asm(s, ASM_CONVERGENT, text, constraints.data, type, sums, count), count, sums);
}

const TensorOps tt_nvptx_tensor_ops = {
    .load_matrices = load_matrices,
    .store_matrices = store_matrices,
    .has_store_matrices = has_store_matrices,
    .mma = mma,
    .shared_base = shared_base,
    .wgmma_begin = wgmma_begin,
    .wgmma_move = wgmma_move,
    .wgmma = wgmma,
    .wgmma_commit = wgmma_commit,
    .wgmma_wait = wgmma_wait,
};

/* ---- asynchronous copies ---------------------------------------------------------------------------------------------------------------- */

/* 16 bytes go past the first cache, if nothing else is wished: what is shared by programs is shared in the second. An
 * ignored source is zeros. Without the eviction hint: of a copy with a cache policy whose slot is in a uniform register
 * ptxas 13.0 makes an instruction for sm_90 that the GPU refuses as illegal. */
static void copy(Simt *s, LLVMValueRef place, int64_t constant, LLVMValueRef pointer, int bytes,
                 LLVMValueRef predicate, const Access *hints)
{
    LLVMValueRef base, arguments[4] = {nvptx_shared_address(s, place)};
    int64_t offset = simt_peel_pointer(pointer, &base);
    Text text = {.arena = s->arena}, constraints = {.arena = s->arena};
    bool caches = bytes < 16 || (hints->cache && !strcmp(hints->cache, ".ca"));
    int count = 2;
    arguments[1] = base;
    tt_text_add(&text, "cp.async.%s.shared.global [$0+%lld], [$1+%lld], %d", caches ? "ca" : "cg",
                (long long)constant, (long long)offset, bytes);
    tt_text_add(&constraints, "r,l");
    if (predicate) {
        tt_text_add(&text, ", $%d", count);
        tt_text_add(&constraints, ",b");
        arguments[count++] = LLVMBuildNot(s->b, predicate, "");
    }
    tt_text_add(&text, ";");
    const char *instruction = text.data;
    if (hints->predicate) {
        instruction = tt_arena_format(s->arena, "@$%d %s", count, text.data);
        tt_text_add(&constraints, ",b");
        arguments[count++] = hints->predicate;
    }
    tt_text_add(&constraints, ",~{memory}");
    nvptx_asm(s, ASM_MEMORY, instruction, constraints.data, s->none, arguments, count);
}

static bool has_copies(const Simt *s) { return s->options->sm >= 80; }

static void commit(Simt *s)
{
    if (has_copies(s))
        nvptx_asm(s, ASM_MEMORY, "cp.async.commit_group;", "~{memory}", s->none, NULL, 0);
}

static void wait(Simt *s, int left)
{
    if (!has_copies(s))
        return;
    const char *text = tt_arena_format(s->arena, "cp.async.wait_group %d;", left);
    nvptx_asm(s, ASM_MEMORY, text, "~{memory}", s->none, NULL, 0);
}

static void fence_proxy(Simt *s)
{
    nvptx_asm(s, ASM_MEMORY, "fence.proxy.async.shared::cta;", "~{memory}", s->none, NULL, 0);
}

/* ---- blocks ----------------------------------------------------------------------------------------------------------------- */

static void set_barriers(Simt *s, LLVMValueRef place, int count, int64_t distance, LLVMValueRef predicate,
                         bool begin)
{
    LLVMValueRef arguments[] = {nvptx_shared_address(s, place), predicate};
    for (int i = 0; i < count; i++) {
        const char *text =
            tt_arena_format(s->arena, "@$1 mbarrier.%s.shared.b64 [$0+%lld]%s;", begin ? "init" : "inval",
                            (long long)(i * distance), begin ? ", 1" : "");
        nvptx_asm(s, ASM_MEMORY, text, "r,b,~{memory}", s->none, arguments, 2);
    }
}

static void expect(Simt *s, LLVMValueRef barrier, int64_t bytes, LLVMValueRef predicate)
{
    LLVMValueRef arguments[] = {nvptx_shared_address(s, barrier), predicate};
    const char *text = tt_arena_format(s->arena, "@$1 mbarrier.arrive.expect_tx.shared.b64 _, [$0], %lld;",
                                       (long long)bytes);
    nvptx_asm(s, ASM_MEMORY, text, "r,b,~{memory}", s->none, arguments, 2);
}

static void await(Simt *s, LLVMValueRef barrier, LLVMValueRef phase)
{
    static const char text[] =
        "{ .reg .pred ended; again: mbarrier.try_wait.parity.shared.b64 ended, [$0], $1; "
        "@!ended bra again; }";
    LLVMValueRef arguments[] = {nvptx_shared_address(s, barrier), phase};
    nvptx_asm(s, ASM_CONVERGENT, text, "r,r,~{memory}", s->none, arguments, 2);
}

/* The address of the map among the kernel's parameters, by the name that LLVM gives these. */
static LLVMValueRef map_address(Simt *s, int number)
{
    size_t length;
    const char *name = LLVMGetValueName2(s->function, &length);
    int index = s->module->functions->body->arg_count + number;
    const char *text =
        tt_arena_format(s->arena, "mov.b64 $0, %s_param_%d; cvta.param.u64 $0, $0;", name, index);
    return nvptx_asm(s, ASM_PURE, text, "=l", s->i64, NULL, 0);
}

void nvptx_prefetch_maps(Simt *s)
{
    static const char text[] = "@$1 prefetch.tensormap [$0];";
    for (int i = 0; i < s->maps.count; i++) {
        LLVMValueRef is_first = LLVMBuildICmp(s->b, LLVMIntEQ, s->ops->thread_id(s), simt_i32(s, 0), "");
        nvptx_asm(s, ASM_MEMORY, text, "l,b,~{memory}", s->none,
                  (LLVMValueRef[]){map_address(s, i), is_first}, 2);
    }
}

static void copy_block(Simt *s, const BlockCopy *copy)
{
    const char *text = "@$5 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                       "[$0], [$1, {$2, $3}], [$4];";
    LLVMValueRef place = LLVMBuildAdd(s->b, copy->place, simt_i32(s, copy->constant), "");
    LLVMValueRef arguments[] = {nvptx_shared_address(s, place),
                                map_address(s, copy->number),
                                copy->offsets[1],
                                copy->offsets[0],
                                nvptx_shared_address(s, copy->barrier),
                                copy->predicate,
                                copy->array_place};
    if (copy->array_place) {
        text = "@$5 cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[$0], [$1, {$2, $6, $3}], [$4];";
        nvptx_asm(s, ASM_MEMORY, text, "r,l,r,r,r,b,r,~{memory}", s->none, arguments, 7);
    } else {
        nvptx_asm(s, ASM_MEMORY, text, "r,l,r,r,r,b,~{memory}", s->none, arguments, 6);
    }
}

const AsyncOps tt_nvptx_async_ops = {.copy = copy,
                                     .commit = commit,
                                     .wait = wait,
                                     .fence_proxy = fence_proxy,
                                     .set_barriers = set_barriers,
                                     .expect = expect,
                                     .await = await,
                                     .copy_block = copy_block};
