/* See image.h: making images, and their bytes. */
#include "runtime/image.h"

#include "analysis/analysis.h"
#include "cpu/cpu.h"
#include "gpu/gpu.h"
#include "runtime/cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- targets ----------------------------------------------------------------------------------------------------------- */

static const char *const names[TARGET_KINDS] = {"cpu", "cuda", "sim"};

bool tt_target_parse(const char *name, Target *target)
{
    size_t length = strcspn(name, ":");
    *target = (Target){TARGET_KINDS, 0};
    for (int kind = 0; kind < TARGET_KINDS; kind++)
        if (strlen(names[kind]) == length && !strncmp(name, names[kind], length))
            target->kind = (TargetKind)kind;
    if (target->kind == TARGET_KINDS || (target->kind == TARGET_CPU && name[length]))
        return false;
    char *end = NULL;
    if (name[length])
        target->sm = (int)strtol(name + length + 1, &end, 10);
    else
        return target->kind != TARGET_SIM;
    return end != name + length + 1 && !*end && target->sm > 0 && target->sm < 1000;
}

const char *tt_target_name(Target target, char out[16])
{
    if (target.kind == TARGET_CPU)
        snprintf(out, 16, "%s", names[target.kind]);
    else
        snprintf(out, 16, "%s:%d", names[target.kind], target.sm);
    return out;
}

/* ---- options ----------------------------------------------------------------------------------------------------------- */

static char *host;
static pthread_once_t host_once = PTHREAD_ONCE_INIT;

static void describe_host(void)
{
    Arena arena = {0};
    Trap trap;
    if (tt_try(&trap, &arena)) {
        const char *text = tt_host_description(&arena);
        host = malloc(strlen(text) + 1);
        if (host)
            strcpy(host, text);
        tt_end_try(&trap);
    }
    tt_arena_release(&arena);
}

static const char *environment(const char *name)
{
    const char *text = tt_variable(name);
    return text ? text : "";
}

/* Nothing is lost by it, and in a stream of short kernels each begins a microsecond sooner. Code for others' launchers is
 * launched as they like. */
static EarlyLaunch choose_early(const CodeOptions *options)
{
    const char *asked = environment("TRITON_EARLY_LAUNCH");
    bool possible = options->target.kind == TARGET_CUDA && options->target.sm >= 90 &&
                    !options->cooperative && !options->traps;
    return possible && (!*asked || tt_is_set("TRITON_EARLY_LAUNCH")) ? EARLY : EARLY_NEVER;
}

void tt_complete_options(CodeOptions *options, Arena *arena)
{
    TargetKind kind = options->target.kind;
    if (options->early == EARLY_IF_POSSIBLE)
        options->early = choose_early(options);
    const char *asked = environment("TRITON_DEEPEN");
    options->deepens = kind != TARGET_CPU && options->num_stages > 1 && !options->cooperative &&
                       (!*asked || tt_is_set("TRITON_DEEPEN"));
    if (kind == TARGET_CUDA) {
        if (!options->ptx_version && !tt_cuda_unavailable())
            options->ptx_version = tt_cuda_device(0)->ptx_version;
        options->libraries = tt_arena_format(arena, "%s:%s:%s", environment("TRITON_LIBDEVICE_PATH"),
                                             environment("CUDA_HOME"), environment("CUDA_PATH"));
        return;
    }
    if (kind == TARGET_SIM)
        options->padding = strtoull(environment("TRITON_SIM_PADDING"), NULL, 0);
    pthread_once(&host_once, describe_host); /* asking the processor takes a while */
    options->machine =
        tt_arena_format(arena, "%s %s", host ? host : "unknown", environment("TRITON_CPU_ARCH"));
}

static void transfer_options(Codec *codec, CodeOptions *options)
{
    TT_CODEC_NUMBER(codec, options->target.kind);
    TT_CODEC_NUMBER(codec, options->target.sm);
    TT_CODEC_NUMBER(codec, options->num_warps);
    TT_CODEC_NUMBER(codec, options->num_stages);
    TT_CODEC_NUMBER(codec, options->num_ctas);
    TT_CODEC_NUMBER(codec, options->max_registers);
    TT_CODEC_NUMBER(codec, options->debug);
    TT_CODEC_NUMBER(codec, options->traps);
    TT_CODEC_NUMBER(codec, options->no_fusion);
    TT_CODEC_NUMBER(codec, options->cooperative);
    TT_CODEC_NUMBER(codec, options->early);
    TT_CODEC_NUMBER(codec, options->deepens);
    TT_CODEC_NUMBER(codec, options->left_out);
    TT_CODEC_STRING(codec, options->choices);
    TT_CODEC_NUMBER(codec, options->ptx_version);
    TT_CODEC_NUMBER(codec, options->padding);
    TT_CODEC_STRING(codec, options->machine);
    TT_CODEC_STRING(codec, options->libraries);
}

void tt_hash_options(Hasher *hasher, const CodeOptions *options)
{
    Arena arena = {0};
    Text text = {.arena = &arena};
    CodeOptions copy = *options;
    transfer_options(&(Codec){.out = &text}, &copy);
    tt_hasher_add(hasher, text.data, text.length);
    tt_arena_release(&arena);
}

/* ---- making ------------------------------------------------------------------------------------------------------------ */

static void find_assembly(Op *op, void *context)
{
    const Loc **found = context;
    if (!*found && tt_find_attr(op, ATTR_text))
        *found = op->loc;
}

static GpuOptions gpu_options(const CodeOptions *options)
{
    return (GpuOptions){.sm = options->target.sm,
                        .ptx_version = options->ptx_version,
                        .num_warps = options->num_warps,
                        .num_stages = options->num_stages,
                        .max_registers = options->max_registers,
                        .enable_fp_fusion = !options->no_fusion,
                        .debug = options->debug && !options->traps,
                        .left_out = options->left_out,
                        .padding = options->padding,
                        .early = options->early > EARLY_NEVER,
                        .waits_as_written = options->early == EARLY_AS_WRITTEN};
}

static void make_for_cuda(Image *image, Module *module, Arena *arena)
{
    GpuOptions options = gpu_options(&image->options);
    image->source = tt_print_module(module, arena, TT_PRINT_LOCATIONS);
    TT_FOR_FUNCTIONS(function, module) { tt_walk(function->body, find_assembly, &image->assembly); }
    options.source = image->source;
    const GpuKernel *kernel = tt_gpu_compile(module, &options, arena);
    image->code = (Bytes){kernel->ptx, strlen(kernel->ptx)};
    image->memory = kernel->shared_bytes;
    image->effort = kernel->effort;
    image->failures = kernel->failures;
    image->failure_count = kernel->failure_count;
    image->maps = kernel->maps;
    image->map_count = kernel->map_count;
}

static void add_arrays(Image *image, const Region *body, Arena *arena)
{
    ImageArray *arrays = TT_NEW_ARRAY(arena, ImageArray, body->arg_count);
    for (int i = 0; i < body->arg_count; i++) {
        const Value *param = body->args[i];
        if (!tt_is_ptr(param->type))
            continue;
        const char *name = param->name ? tt_arena_format(arena, "the array '%s'", param->name)
                                       : tt_arena_format(arena, "the array in argument %d", i);
        arrays[image->array_count++] = (ImageArray){name, tt_byte_width(param->type->element)};
    }
    image->arrays = arrays;
}

static void make_for_simulator(Image *image, Module *module, Arena *arena)
{
    GpuOptions options = gpu_options(&image->options);
    image->source = tt_print_module(module, arena, TT_PRINT_LOCATIONS);
    add_arrays(image, module->functions->body, arena);
    options.source = image->source;
    const SimKernel *kernel = tt_gpu_compile_for_simulator(module, &options, arena);
    image->code = kernel->object.file;
    image->code_size = kernel->object.code_size;
    image->memory = kernel->shared_bytes;
    image->stack_bytes = kernel->stack_bytes;
    image->synchronisations = kernel->synchronisations;
}

static void make_for_cpu(Image *image, Module *module, Arena *arena)
{
    CpuOptions options = {image->options.debug, image->options.no_fusion};
    const CpuImage *cpu = tt_cpu_compile(module, &options, arena);
    image->source = cpu->source;
    image->code = cpu->object;
    image->memory = (int64_t)cpu->scratch_size;
    image->streams = cpu->streams;
    image->stored_bytes = cpu->stored_bytes;
    image->lowering_milliseconds = cpu->lowering_milliseconds;
}

Image *tt_make_image(Module *module, const CodeOptions *options, Arena *arena)
{
    if (options->target.kind != TARGET_CPU && options->num_ctas > 1)
        tt_remark(module, module->functions->loc,
                  "num_ctas=%d is not done: a program runs on one block of threads", options->num_ctas);
    Image *image = TT_NEW(arena, Image);
    module->asked_choices = options->choices;
    image->options = *options;
    image->name = tt_arena_strdup(arena, module->functions->name);
    image->parameter_count = module->functions->body->arg_count;
    image->stored = tt_analyze_param_pointers(module->functions, arena)->stored;
    image->order = tt_analyze_order(module->functions, arena);
    if (options->target.kind == TARGET_CUDA)
        make_for_cuda(image, module, arena);
    else if (options->target.kind == TARGET_SIM)
        make_for_simulator(image, module, arena);
    else
        make_for_cpu(image, module, arena);
    image->remarks = module->remarks.data;
    image->remark_count = module->remarks.count;
    return image;
}

/* ---- texts ------------------------------------------------------------------------------------------------------------- */

static const char *gpu_text(const Image *image, bool llvm, bool locations, Arena *arena)
{
    GpuOptions options = gpu_options(&image->options);
    options.locations = locations;
    options.source = image->source;
    Module *module = tt_parse_module(arena, image->source, image->name);
    module->asked_choices = image->options.choices;
    options.texts = true;
    if (image->options.target.kind == TARGET_SIM) {
        const SimKernel *kernel = tt_gpu_compile_for_simulator(module, &options, arena);
        return llvm ? kernel->llir : kernel->ttgir;
    }
    const GpuKernel *kernel = tt_gpu_compile(module, &options, arena);
    return llvm ? kernel->llir : kernel->ttgir;
}

const char *tt_image_text(const Image *image, const char *stage, Arena *arena)
{
    TargetKind kind = image->options.target.kind;
    bool locations = !strcmp(stage, "ttir+loc") || !strcmp(stage, "ttgir+loc");
    if (!strcmp(stage, "ttir+loc"))
        return image->source;
    if (kind == TARGET_CPU) {
        CpuImage cpu = {.name = image->name, .source = image->source};
        cpu.options = (CpuOptions){image->options.debug, image->options.no_fusion};
        return tt_cpu_text(&cpu, stage, arena);
    }
    if (!strcmp(stage, "ttir"))
        return tt_print_module(tt_parse_module(arena, image->source, image->name), arena, 0);
    if (!strcmp(stage, "ptx") && kind == TARGET_CUDA)
        return image->code.data;
    if (!strncmp(stage, "ttgir", strlen("ttgir")) || !strcmp(stage, "llir"))
        return gpu_text(image, !strcmp(stage, "llir"), locations, arena);
    return NULL;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------------- */

/* Callers are left out: what is said of these places does not name them. */
static void transfer_place(Codec *codec, const Loc **place)
{
    bool is_there = *place != NULL;
    if (!TT_CODEC_NUMBER(codec, is_there))
        return;
    Loc loc = codec->out ? **place : (Loc){0};
    TT_CODEC_STRING(codec, loc.file);
    TT_CODEC_STRING(codec, loc.function);
    TT_CODEC_NUMBER(codec, loc.line);
    TT_CODEC_NUMBER(codec, loc.column);
    TT_CODEC_NUMBER(codec, loc.end_line);
    TT_CODEC_NUMBER(codec, loc.end_column);
    if (!codec->out)
        *place = tt_arena_copy(codec->arena, &loc, sizeof loc);
}

/* How many items there are; when reading, room for them is made first. */
#define TRANSFER_COUNT(codec, items, count)                                                                  \
    (count) = tt_codec_count((codec), (count));                                                              \
    if (!(codec)->out)                                                                                       \
    (items) = tt_arena_alloc((codec)->arena, sizeof *(items) * (size_t)((count) + 1))

static void transfer_map(Codec *codec, TensorMap *map)
{
    TT_CODEC_NUMBER(codec, map->param);
    for (int i = 0; i < MAP_TERMS; i++)
        TT_CODEC_NUMBER(codec, map->terms[i]);
    TT_CODEC_NUMBER(codec, map->has_places);
    TT_CODEC_NUMBER(codec, map->element_bytes);
    TT_CODEC_NUMBER(codec, map->rows);
    TT_CODEC_NUMBER(codec, map->row_bytes);
}

static void transfer_lists(Codec *codec, Image *image)
{
    TRANSFER_COUNT(codec, image->failures, image->failure_count);
    for (int i = 0; i < image->failure_count; i++) {
        TT_CODEC_NUMBER(codec, image->failures[i].kind);
        TT_CODEC_STRING(codec, image->failures[i].place);
        TT_CODEC_STRING(codec, image->failures[i].message);
    }
    TRANSFER_COUNT(codec, image->arrays, image->array_count);
    for (int i = 0; i < image->array_count; i++) {
        TT_CODEC_STRING(codec, image->arrays[i].name);
        TT_CODEC_NUMBER(codec, image->arrays[i].element_bytes);
    }
    TRANSFER_COUNT(codec, image->maps, image->map_count);
    for (int i = 0; i < image->map_count; i++)
        transfer_map(codec, &image->maps[i]);
    TRANSFER_COUNT(codec, image->remarks, image->remark_count);
    for (int i = 0; i < image->remark_count; i++) {
        transfer_place(codec, &image->remarks[i].loc);
        TT_CODEC_STRING(codec, image->remarks[i].message);
    }
}

static void transfer_term(Codec *codec, RangeTerm *term)
{
    TT_CODEC_NUMBER(codec, term->kind);
    TT_CODEC_NUMBER(codec, term->is_long);
    TT_CODEC_NUMBER(codec, term->facts);
    TT_CODEC_NUMBER(codec, term->a);
    TT_CODEC_NUMBER(codec, term->b);
    TT_CODEC_NUMBER(codec, term->c);
    TT_CODEC_NUMBER(codec, term->input);
    TT_CODEC_NUMBER(codec, term->bounds.lowest);
    TT_CODEC_NUMBER(codec, term->bounds.highest);
}

static void transfer_checks(Codec *codec, Image *image)
{
    bool is_there = image->checks != NULL;
    if (!TT_CODEC_NUMBER(codec, is_there))
        return;
    RangeProgram *checks = codec->out ? image->checks : TT_NEW(codec->arena, RangeProgram);
    image->checks = checks;
    TT_CODEC_NUMBER(codec, checks->counts_programs);
    TRANSFER_COUNT(codec, checks->inputs, checks->input_count);
    for (int i = 0; i < checks->input_count; i++) {
        TT_CODEC_NUMBER(codec, checks->inputs[i].is_extent);
        TT_CODEC_NUMBER(codec, checks->inputs[i].is_long);
        TT_CODEC_NUMBER(codec, checks->inputs[i].index);
    }
    TRANSFER_COUNT(codec, checks->terms, checks->term_count);
    for (int i = 0; i < checks->term_count; i++)
        transfer_term(codec, &checks->terms[i]);
}

static void transfer_image(Codec *codec, Image *image)
{
    transfer_options(codec, &image->options);
    TT_CODEC_STRING(codec, image->name);
    TT_CODEC_STRING(codec, image->source);
    image->code = tt_codec_bytes(codec, image->code);
    TT_CODEC_NUMBER(codec, image->code_size);
    Bytes stored = tt_codec_bytes(codec, (Bytes){image->stored, (size_t)image->parameter_count});
    image->stored = stored.data;
    image->parameter_count = (int)stored.size;
    Bytes order =
        tt_codec_bytes(codec, (Bytes){image->order, image->order ? (size_t)image->parameter_count : 0});
    image->order = order.size ? order.data : NULL;
    TT_CODEC_NUMBER(codec, image->rests_on);
    transfer_checks(codec, image);
    TT_CODEC_NUMBER(codec, image->memory);
    TT_CODEC_NUMBER(codec, image->streams);
    image->stored_bytes = (float)tt_codec_real(codec, (double)image->stored_bytes);
    TT_CODEC_NUMBER(codec, image->stack_bytes);
    TT_CODEC_NUMBER(codec, image->synchronisations);
    TT_CODEC_NUMBER(codec, image->effort);
    transfer_place(codec, &image->assembly);
    transfer_lists(codec, image);
}

Bytes tt_image_bytes(const Image *image, const Digest *key, Arena *arena)
{
    Text text = {.arena = arena};
    Image copy = *image;
    transfer_image(&(Codec){.out = &text}, &copy);
    return tt_seal(SEAL_IMAGE, key, (Bytes){text.data, text.length}, arena);
}

Image *tt_read_image(Bytes bytes, const Digest *key, Arena *arena)
{
    Bytes content = tt_unseal(SEAL_IMAGE, key, bytes);
    if (!content.data)
        return NULL;
    Codec codec = {.at = content.data, .end = (const char *)content.data + content.size, .arena = arena};
    Image *image = TT_NEW(arena, Image);
    transfer_image(&codec, image);
    bool is_complete =
        !codec.failed && codec.at == codec.end && image->name && image->source && image->code.data;
    return is_complete ? image : NULL;
}

bool tt_image_fits(const Image *image)
{
    Arena arena = {0};
    CodeOptions here = {.target = image->options.target};
    bool fits = true;
    if (here.target.kind != TARGET_CUDA) {
        tt_complete_options(&here, &arena);
        fits = image->options.machine && !strcmp(here.machine, image->options.machine);
    }
    tt_arena_release(&arena);
    return fits;
}
