/* A kernel as an LLVM function: its parameters, the values that threads have from the start, and its body. */
#include "gpu/simt.h"
#include "codegen/debug_info.h"

static void set_types(Simt *s)
{
    LLVMContextRef c = s->context;
    s->i1 = LLVMInt1TypeInContext(c);
    s->i8 = LLVMInt8TypeInContext(c);
    s->i16 = LLVMInt16TypeInContext(c);
    s->i32 = LLVMInt32TypeInContext(c);
    s->i64 = LLVMInt64TypeInContext(c);
    s->f16 = LLVMHalfTypeInContext(c);
    s->bf16 = LLVMBFloatTypeInContext(c);
    s->f32 = LLVMFloatTypeInContext(c);
    s->f64 = LLVMDoubleTypeInContext(c);
    s->global_ptr = LLVMPointerTypeInContext(c, GLOBAL_MEMORY);
    s->none = LLVMVoidTypeInContext(c);
}

/* Zero bits at the end of a parameter, from its divisibility. */
static int known_zeros(const Attr *attr)
{
    for (; attr; attr = attr->next)
        if (attr->key == ATTR_divisibility && attr->count)
            return __builtin_ctzll((uint64_t)attr->ints[0]);
    return 0;
}

static void enter(Simt *s, const Function *function)
{
    LLVMPositionBuilderAtEnd(s->b, simt_new_block(s, "entry"));
    s->ops->begin(s);
    s->thread = s->ops->thread_id(s);
    s->lane = s->thread;
    s->warp = simt_i32(s, 0);
    if (s->options->num_warps > 1) {
        s->lane = LLVMBuildAnd(s->b, s->thread, simt_i32(s, TT_LANES - 1), "");
        s->warp = LLVMBuildLShr(s->b, s->thread, simt_i32(s, TT_LANE_BITS), "");
    }
    LLVMBasicBlockRef body = simt_new_block(s, "body");
    s->entry_end = LLVMBuildBr(s->b, body);
    LLVMPositionBuilderAtEnd(s->b, body);
    for (int i = 0; i < function->body->arg_count; i++) {
        const Value *param = function->body->args[i];
        bool is_bool = tt_is_bool(param->type); /* passed as a byte */
        LLVMValueRef value = s->ops->param(s, is_bool ? s->i8 : simt_type(s, param->type), i);
        simt_set_scalar(s, param, is_bool ? simt_from_bits(s, value, s->i1) : value);
        if (tt_is_int(param->type))
            *tt_map_slot_ptr(&s->known_zeros, value) =
                (void *)(intptr_t)known_zeros(function->param_attrs[i]);
    }
}

static void dispose_builder(void *builder) { LLVMDisposeBuilder(builder); }

int tt_lower_kernel(Codegen *codegen, Module *module, const GpuOptions *options, const TargetOps *ops,
                    GpuKernel *kernel)
{
    Arena *arena = codegen->arena;
    Function *function = module->functions;
    Simt *s = TT_NEW(arena, Simt);
    *s = (Simt){.arena = arena,
                .module = module,
                .options = options,
                .ops = ops,
                .codegen = codegen,
                .context = codegen->context,
                .llvm = codegen->module,
                .known_zeros = {.arena = arena},
                .pairs = {.arena = arena},
                .per_thread = {.arena = arena},
                .sums = {.arena = arena},
                .symbols = {.arena = arena}};
    s->has_products = tt_has_products(function->body);
    s->axis_infos = tt_analyze_axis_info(function, arena);
    s->pointers = tt_analyze_param_pointers(function, arena);
    s->b = LLVMCreateBuilderInContext(s->context);
    tt_arena_on_release(arena, dispose_builder, s->b);
    set_types(s);
    simt_find_maps(s, function);
    simt_find_pairs(s, function);
    ops->add_kernel(s, function);
    s->debug_info = tt_new_debug_info(codegen, s->function, function->name, function->loc);
    tt_debug_at(s->debug_info, s->b, function->loc);
    tt_take_marks(function);
    enter(s, function);
    simt_begin_strips(s);
    simt_lower_region(s, function->body);
    simt_leave_phase(s);
    LLVMBuildRetVoid(s->b);
    simt_finish_strips(s);
    tt_return_marks(function);
    tt_finish_debug_info(s->debug_info, s->b);
    if (kernel) {
        kernel->failures = s->failures.data;
        kernel->failure_count = s->failures.count;
        kernel->maps = s->maps.data;
        kernel->map_count = s->maps.count;
    }
    return s->synchronisations;
}
