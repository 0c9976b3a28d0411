/* Tensor cores and asynchronous copies for the simulator. Registers go to the machine and come back through memory of the
 * thread's own. */
#include "gpu/sim.h"

/* ---- registers in memory --------------------------------------------------------------------------------------------------- */

static LLVMValueRef at(Simt *s, LLVMValueRef memory, size_t bytes)
{
    LLVMValueRef index = simt_int(s->i64, (int64_t)bytes);
    return LLVMBuildGEP2(s->b, s->i8, memory, &index, 1, "");
}

/* Registers `stride` bytes apart, from `offset` on. */
static void put(Simt *s, LLVMValueRef memory, size_t offset, size_t stride, LLVMValueRef const *values,
                int count)
{
    for (int i = 0; i < count; i++)
        LLVMBuildStore(s->b, values[i], at(s, memory, offset + stride * (size_t)i));
}

static void get(Simt *s, LLVMValueRef memory, size_t offset, size_t stride, LLVMTypeRef type,
                LLVMValueRef *values, int count)
{
    for (int i = 0; i < count; i++)
        values[i] = LLVMBuildLoad2(s->b, type, at(s, memory, offset + stride * (size_t)i), "");
}

static LLVMValueRef shared_place(Simt *s, LLVMValueRef place, int64_t constant)
{
    return LLVMBuildAdd(s->b, place, simt_i32(s, constant), "");
}

static int scratch_words(size_t bytes) { return (int)((bytes + 7) / 8); }

/* ---- tensor cores ---------------------------------------------------------------------------------------------------------- */

static SimElement element_of(Simt *s, TypeKind kind)
{
    switch (kind) {
    case TT_F16:
        return SIM_F16;
    case TT_BF16:
        return SIM_BF16;
    case TT_F32:
        return SIM_TF32;
    case TT_I8:
        return SIM_I8;
    case TT_F8E4M3:
        return SIM_E4M3;
    case TT_F8E5M2:
        return SIM_E5M2;
    case TT_F64:
        return SIM_F64;
    default:
        tt_unsupported(s->op->loc, "tensor cores for %s", tt_type_name(kind));
    }
}

static LLVMValueRef element(Simt *s, TypeKind kind) { return simt_i32(s, element_of(s, kind)); }

static void load_matrices(Simt *s, LLVMValueRef place, int64_t constant, int count, bool transposed,
                          LLVMValueRef *words)
{
    LLVMValueRef memory = machine_scratch(s, 2);
    MACHINE(s, tt_sim_load_matrices, s->none, machine_thread(s), shared_place(s, place, constant),
            simt_i32(s, count), simt_i32(s, transposed), memory, machine_site(s));
    get(s, memory, 0, 4, s->i32, words, count);
}

static void store_matrices(Simt *s, LLVMValueRef place, int64_t constant, int count, bool transposed,
                           LLVMValueRef const *words)
{
    LLVMValueRef memory = machine_scratch(s, 2);
    put(s, memory, 0, 4, words, count);
    MACHINE(s, tt_sim_store_matrices, s->none, machine_thread(s), shared_place(s, place, constant),
            simt_i32(s, count), simt_i32(s, transposed), memory, machine_site(s));
}

static bool has_store_matrices(const Simt *s) { return s->options->sm >= 90; }

static void mma(Simt *s, const Mma *mma, LLVMValueRef const *a, LLVMValueRef const *b, LLVMValueRef *sums)
{
    LLVMTypeRef sum = LLVMTypeOf(sums[0]);
    LLVMValueRef memory = machine_scratch(s, scratch_words(sizeof(SimMma)));
    put(s, memory, offsetof(SimMma, a), 8, a, 4);
    put(s, memory, offsetof(SimMma, b), 8, b, 2);
    int count = mma->sum == TT_F16 ? 2 : 4;
    put(s, memory, offsetof(SimMma, sums), 8, sums, count);
    MACHINE(s, tt_sim_mma, s->none, machine_thread(s), element(s, mma->a), element(s, mma->b),
            simt_i32(s, mma->sum == TT_F16), memory, machine_site(s));
    get(s, memory, offsetof(SimMma, sums), 8, sum, sums, count);
}

static void wgmma_begin(Simt *s) { MACHINE(s, tt_sim_wgmma_begin, s->none, machine_thread(s)); }

static LLVMValueRef major(Simt *s, bool transposed)
{
    return simt_i32(s, transposed ? SIM_MN_MAJOR : SIM_K_MAJOR);
}

static void wgmma(Simt *s, const Wgmma *w)
{
    LLVMTypeRef sum = LLVMTypeOf(w->sums[0]);
    LLVMValueRef memory = machine_scratch(s, scratch_words(sizeof(SimWgmma)));
    LLVMValueRef in_halves = simt_i32(s, w->sum == TT_F16);
    LLVMValueRef a_major = w->a_words ? simt_i32(s, SIM_IN_REGISTERS) : major(s, w->a_is_transposed);
    for (int i = 0; i < w->steps; i++) {
        LLVMValueRef adds = simt_i32(s, i || w->adds);
        if (w->a_words)
            put(s, memory, offsetof(SimWgmma, a_words), 4, w->a_words + 4 * i, 4);
        else
            put(s, memory, offsetof(SimWgmma, a_matrix), 8, w->a_matrices + i, 1);
        put(s, memory, offsetof(SimWgmma, b_matrix), 8, w->b_matrices + i, 1);
        put(s, memory, offsetof(SimWgmma, adds), 4, &adds, 1);
        put(s, memory, offsetof(SimWgmma, in_halves), 4, &in_halves, 1);
        put(s, memory, offsetof(SimWgmma, sums), 4, w->sums, tt_wgmma_sums(w));
        MACHINE(s, tt_sim_wgmma, s->none, machine_thread(s), element(s, w->a), element(s, w->b),
                simt_i32(s, w->n), a_major, major(s, w->b_is_transposed), memory, machine_site(s));
        get(s, memory, offsetof(SimWgmma, sums), 4, sum, w->sums, tt_wgmma_sums(w));
    }
}

static void wgmma_commit(Simt *s) { MACHINE(s, tt_sim_wgmma_commit, s->none, machine_thread(s)); }

static void wgmma_wait(Simt *s, int left, LLVMValueRef *sums, int count)
{
    LLVMValueRef memory = machine_scratch(s, scratch_words(4 * (size_t)TT_MAX(count, 1)));
    put(s, memory, 0, 4, sums, count);
    MACHINE(s, tt_sim_wgmma_wait, s->none, machine_thread(s), simt_i32(s, left), memory, simt_i32(s, count),
            machine_site(s));
    for (int i = 0; i < count; i++)
        get(s, memory, 4 * (size_t)i, 4, LLVMTypeOf(sums[i]), &sums[i], 1);
}

const TensorOps tt_sim_tensor_ops = {
    .load_matrices = load_matrices,
    .store_matrices = store_matrices,
    .has_store_matrices = has_store_matrices,
    .mma = mma,
    .wgmma_begin = wgmma_begin,
    .wgmma = wgmma,
    .wgmma_commit = wgmma_commit,
    .wgmma_wait = wgmma_wait,
};

/* ---- asynchronous copies ---------------------------------------------------------------------------------------------------- */

static void copy(Simt *s, LLVMValueRef place, int64_t constant, LLVMValueRef pointer, int bytes,
                 LLVMValueRef predicate, const Access *hints)
{
    LLVMValueRef address = LLVMBuildPtrToInt(s->b, pointer, s->i64, ""), none = simt_i32(s, 0);
    LLVMValueRef all = simt_i32(s, bytes), source_bytes = all;
    if (predicate)
        source_bytes = LLVMBuildSelect(s->b, predicate, all, none, "");
    if (hints->predicate)
        all = LLVMBuildSelect(s->b, hints->predicate, all, none, "");
    MACHINE(s, tt_sim_copy_async, s->none, machine_thread(s), shared_place(s, place, constant), address, all,
            source_bytes, machine_site(s));
}

static void commit(Simt *s) { MACHINE(s, tt_sim_copy_commit, s->none, machine_thread(s)); }

static void wait(Simt *s, int left)
{
    MACHINE(s, tt_sim_copy_wait, s->none, machine_thread(s), simt_i32(s, left));
}

static void fence_proxy(Simt *s) { MACHINE(s, tt_sim_fence_proxy, s->none, machine_thread(s)); }

static void set_barriers(Simt *s, LLVMValueRef place, int count, int64_t distance, LLVMValueRef predicate,
                         bool begin)
{
    LLVMValueRef is_there = LLVMBuildZExt(s->b, predicate, s->i32, "");
    for (int i = 0; i < count; i++)
        MACHINE(s, tt_sim_set_arrivals, s->none, machine_thread(s), shared_place(s, place, i * distance),
                simt_i32(s, begin), is_there, machine_site(s));
}

static void expect(Simt *s, LLVMValueRef barrier, int64_t bytes, LLVMValueRef predicate)
{
    MACHINE(s, tt_sim_expect, s->none, machine_thread(s), barrier, simt_i32(s, bytes),
            LLVMBuildZExt(s->b, predicate, s->i32, ""), machine_site(s));
}

static void await(Simt *s, LLVMValueRef barrier, LLVMValueRef phase)
{
    MACHINE(s, tt_sim_await, s->none, machine_thread(s), barrier, phase, machine_site(s));
}

/* The fields of a SimBlockCopy, in their order. */
static void copy_block(Simt *s, const BlockCopy *copy)
{
    const TensorMap *map = copy->map;
    LLVMValueRef fields[] = {
        LLVMBuildPtrToInt(s->b, copy->base, s->i64, ""),
        copy->extents[0],
        copy->extents[1],
        copy->stride,
        LLVMBuildSExt(s->b, copy->offsets[0], s->i64, ""),
        LLVMBuildSExt(s->b, copy->offsets[1], s->i64, ""),
        simt_int(s->i64, map->element_bytes),
        simt_int(s->i64, map->rows),
        simt_int(s->i64, map->row_bytes),
    };
    LLVMValueRef memory = machine_scratch(s, (int)TT_COUNT(fields));
    put(s, memory, 0, 8, fields, (int)TT_COUNT(fields));
    MACHINE(s, tt_sim_copy_block, s->none, machine_thread(s), shared_place(s, copy->place, copy->constant),
            copy->barrier, memory, LLVMBuildZExt(s->b, copy->predicate, s->i32, ""), machine_site(s));
}

const AsyncOps tt_sim_async_ops = {.copy = copy,
                                   .commit = commit,
                                   .wait = wait,
                                   .fence_proxy = fence_proxy,
                                   .set_barriers = set_barriers,
                                   .expect = expect,
                                   .await = await,
                                   .copy_block = copy_block};
