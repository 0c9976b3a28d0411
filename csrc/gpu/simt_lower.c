/* A kernel as an LLVM function: its parameters, the values that threads have from the start, and its body. */
#include "gpu/simt.h"
#include "codegen/debug_info.h"

enum { PTX_KERNEL = 71 /* LLVM's calling convention */, SHARED_ALIGNMENT = 1024 };

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

/* i1 is passed as a byte. */
static LLVMTypeRef param_type(Simt *s, const Type *type)
{
    return tt_is_bool(type) ? s->i8 : simt_type(s, type);
}

static void add_function_attribute(Simt *s, const char *name, const char *value)
{
    LLVMAttributeRef attribute = LLVMCreateStringAttribute(s->context, name, (unsigned)strlen(name), value,
                                                           (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(s->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

static void add_kernel(Simt *s, const Function *function)
{
    const Region *body = function->body;
    LLVMTypeRef *params = TT_NEW_ARRAY(s->arena, LLVMTypeRef, body->arg_count);
    for (int i = 0; i < body->arg_count; i++)
        params[i] = param_type(s, body->args[i]->type);
    LLVMTypeRef type = LLVMFunctionType(s->none, params, (unsigned)body->arg_count, 0);
    s->function = LLVMAddFunction(s->llvm, function->name, type);
    LLVMSetFunctionCallConv(s->function, PTX_KERNEL);
    const char *threads = tt_arena_format(s->arena, "%d", TT_LANES * s->options->num_warps);
    add_function_attribute(s, "nvvm.reqntid", threads);
}

static void add_shared_memory(Simt *s)
{
    s->shared = LLVMAddGlobalInAddressSpace(s->llvm, LLVMArrayType2(s->i8, 0), "shared", SHARED_MEMORY);
    LLVMSetLinkage(s->shared, LLVMExternalLinkage);
    LLVMSetAlignment(s->shared, SHARED_ALIGNMENT);
}

static void enter(Simt *s, const Function *function)
{
    LLVMPositionBuilderAtEnd(s->b, simt_new_block(s, "entry"));
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
        LLVMValueRef value = LLVMGetParam(s->function, (unsigned)i);
        simt_set_scalar(s, param, tt_is_bool(param->type) ? simt_from_bits(s, value, s->i1) : value);
    }
}

static void dispose_builder(void *builder) { LLVMDisposeBuilder(builder); }

void tt_lower_kernel(Codegen *codegen, Module *module, const GpuOptions *options, const TargetOps *ops)
{
    Arena *arena = codegen->arena;
    Function *function = module->functions;
    Simt *s = TT_NEW(arena, Simt);
    *s = (Simt){.arena = arena,
                .module = module,
                .options = options,
                .ops = ops,
                .context = codegen->context,
                .llvm = codegen->module,
                .per_thread = {.arena = arena},
                .sums = {.arena = arena},
                .symbols = {.arena = arena}};
    s->axis_infos = tt_analyze_axis_info(function, arena);
    s->b = LLVMCreateBuilderInContext(s->context);
    tt_arena_on_release(arena, dispose_builder, s->b);
    set_types(s);
    add_kernel(s, function);
    add_shared_memory(s);
    s->debug_info = tt_new_debug_info(codegen, s->function, function->name, function->loc);
    tt_debug_at(s->debug_info, s->b, function->loc);
    tt_take_marks(function);
    enter(s, function);
    simt_lower_region(s, function->body);
    LLVMBuildRetVoid(s->b);
    tt_return_marks(function);
    tt_finish_debug_info(s->debug_info, s->b);
}
