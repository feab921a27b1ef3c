#define _GNU_SOURCE
#include "walk.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neml2_capi_experimental.h"

enum { POINTS = 40, MOST = 12, MOST_BLOCKS = 16, VALUES = POINTS * 36 };

/* A second failure of the same call means that the first one left something behind. */
static int goes_on(walk *w, const char *call, int32_t status, int *tries) {
  char message[512] = "";
  neml2_error_message(message, sizeof message, NULL);
  w->failed(w, call, status, message);
  return w->resumes && ++*tries < 3;
}

#define TRY(call)                                     \
  for (int tries = 0;;) {                             \
    status = (call);                                  \
    if (status == NEML2_OK) break;                    \
    if (!goes_on(w, #call, status, &tries)) goto end; \
  }

/* A call with a mistake in it, which must be reported as long as there is memory for the words. */
#define TRY_MISTAKE(expected, call)                   \
  for (int tries = 0;;) {                             \
    status = (call);                                  \
    if (status == (expected)) break;                  \
    if (!goes_on(w, #call, status, &tries)) goto end; \
  }                                                   \
  status = NEML2_OK

static void keep(walk *w, int64_t count, const double *numbers) {
  if (w->count + count > WALK_MOST_NUMBERS) abort();
  memcpy(w->numbers + w->count, numbers, (size_t)count * sizeof *numbers);
  w->count += count;
}

static void keep_number(walk *w, double number) { keep(w, 1, &number); }

static void keep_text(walk *w, const char *text) {
  double sum = 0;
  for (int i = 1; *text; ++text, ++i) sum += (unsigned char)*text * (1 + i % 97);
  keep_number(w, sum);
}

/* The values of an input: strains that differ from point to point, the time, and zeros for what lies in the past. */
static void fill(const char *name, int64_t size, double *values) {
  static const double strain[6] = {2e-3, -6e-4, -5e-4, 1e-4, 2e-4, -1e-4};
  for (int64_t i = 0; i < POINTS * size; ++i) {
    values[i] = strchr(name, '~') ? 0 : strain[i % size % 6] * (1 + 0.02 * (double)(i / size));
    if (strcmp(name, "t") == 0) values[i] = 1;
  }
}

typedef struct {
  const char *name;
  int64_t size, ndim, shape[3];
  double *values;
} array;

static int32_t variables_of(walk *w, const neml2_model *model, int32_t kind, int64_t *count, array *arrays,
                            double (*memory)[VALUES]) {
  int32_t status;
  TRY(neml2_model_variable_count(count, model, kind));
  for (int64_t i = 0; i < *count; ++i) {
    neml2_variable_info info = {.size = sizeof info};
    TRY(neml2_model_variable_inspect(&info, model, kind, i));
    array *a = &arrays[i];
    *a = (array){info.name, 1, 1 + info.ndim, {POINTS, 0, 0}, memory[i]};
    for (int64_t axis = 0; axis < info.ndim; ++axis) a->size *= a->shape[1 + axis] = info.shape[axis];
    if (kind == NEML2_INPUT) fill(a->name, a->size, a->values);
  }
end:
  return status;
}

/* Through a call that is bound to arrays. */
static int32_t run_a_call(walk *w, const neml2_model *model, array *inputs, int64_t ninputs, array *outputs,
                          int64_t noutputs) {
  static double blocks[MOST_BLOCKS][VALUES], norms[POINTS];
  static int32_t statuses[POINTS], iterations[POINTS];
  neml2_call *call = NULL;
  int64_t nblocks = 0, sizes[MOST_BLOCKS];
  int32_t status;
  TRY(neml2_call_create(&call, model));
  for (int64_t i = 0; i < ninputs; ++i)
    TRY(neml2_call_bind(call, NEML2_INPUT, inputs[i].name, inputs[i].values, NEML2_FLOAT64, inputs[i].size));
  for (int64_t i = 0; i < noutputs; ++i)
    TRY(neml2_call_bind(call, NEML2_OUTPUT, outputs[i].name, outputs[i].values, NEML2_FLOAT64, outputs[i].size));
  TRY_MISTAKE(NEML2_ERROR_NAME, neml2_call_bind(call, NEML2_OUTPUT, "strss", outputs[0].values, NEML2_FLOAT64, 6));
  TRY(neml2_call_bind_report(call, NEML2_REPORT_STATUS, statuses, 1));
  TRY(neml2_call_bind_report(call, NEML2_REPORT_ITERATIONS, iterations, 1));
  TRY(neml2_call_bind_report(call, NEML2_REPORT_RESIDUAL_NORM, norms, 1));
  TRY(neml2_call_run(call, POINTS));
  for (int64_t i = 0; i < noutputs; ++i) keep(w, POINTS * outputs[i].size, outputs[i].values);
  TRY(neml2_model_derivative_count(&nblocks, model, NEML2_INPUT));
  if (nblocks > MOST_BLOCKS) nblocks = MOST_BLOCKS;
  for (int64_t i = 0; i < nblocks; ++i) {
    neml2_derivative_info info = {.size = sizeof info};
    TRY(neml2_model_derivative_inspect(&info, model, NEML2_INPUT, i));
    sizes[i] = 1;
    for (int64_t axis = 0; axis < info.ndim; ++axis) sizes[i] *= info.shape[axis];
    TRY(neml2_call_bind_derivative(call, NEML2_INPUT, outputs[info.output].name, inputs[info.variable].name, blocks[i],
                                   NEML2_FLOAT64, sizes[i]));
  }
  TRY(neml2_call_run(call, POINTS));
  for (int64_t i = 0; i < nblocks; ++i) keep(w, sizes[i], blocks[i]);
  TRY(neml2_call_run(call, 1));
  keep(w, outputs[0].size, outputs[0].values);
  keep_number(w, iterations[0] + statuses[POINTS - 1]);
end:
  neml2_call_free(&call);
  return status;
}

static int32_t keep_tensors(walk *w, neml2_tensor **tensors, int64_t count) {
  int32_t status = NEML2_OK;
  for (int64_t i = 0; i < count; ++i) {
    neml2_tensor_info info = {.size = sizeof info};
    if (!tensors[i]) continue;
    TRY(neml2_tensor_inspect(&info, tensors[i]));
    keep(w, info.ndim > 1 ? info.shape[info.ndim - 1] : 1, info.data);
  }
end:
  return status;
}

static void free_tensors(neml2_tensor **tensors, int64_t count) {
  for (int64_t i = 0; i < count; ++i) neml2_tensor_free(&tensors[i]);
}

/* Over tensors, with a report and all derivatives. */
static int32_t run_over_tensors(walk *w, const neml2_model *model, array *inputs, int64_t ninputs, int64_t noutputs) {
  neml2_tensor *given[MOST] = {NULL}, *results[MOST] = {NULL}, *directions[MOST] = {NULL}, *of_report = NULL;
  neml2_tensor *blocks[MOST * MOST] = {NULL};
  neml2_report *report = NULL;
  int64_t nblocks = 0;
  int32_t status;
  for (int64_t i = 0; i < ninputs; ++i)
    TRY(neml2_tensor_wrap(&given[i], inputs[i].values, NEML2_FLOAT64, inputs[i].ndim, inputs[i].shape, NULL, NULL,
                          NULL));
  TRY(neml2_model_forward(results, &report, model, given, NULL));
  TRY(keep_tensors(w, results, noutputs));
  TRY(neml2_report_get(&of_report, report, NEML2_REPORT_RESIDUAL_NORM));
  TRY_MISTAKE(NEML2_ERROR_SHAPE, neml2_tensor_wrap(&directions[0], inputs[0].values, NEML2_FLOAT64, 17,
                                                   (const int64_t[17]){1}, NULL, NULL, NULL));
  TRY(neml2_model_derivative_count(&nblocks, model, NEML2_INPUT));
  if (nblocks > 0) {
    free_tensors(results, noutputs);
    TRY(neml2_model_jacobian(results, blocks, NULL, model, NEML2_INPUT, given, NULL));
    TRY(keep_tensors(w, blocks, nblocks));
    TRY(neml2_model_jvp(NULL, directions, NULL, model, given, given, NULL));
    TRY(keep_tensors(w, directions, noutputs));
    free_tensors(directions, noutputs);
    TRY(neml2_model_vjp(NULL, directions, NULL, model, NEML2_INPUT, given, results, NULL));
    TRY(keep_tensors(w, directions, ninputs));
  }
end:
  free_tensors(given, MOST);
  free_tensors(results, MOST);
  free_tensors(directions, MOST);
  free_tensors(blocks, MOST * MOST);
  neml2_tensor_free(&of_report);
  neml2_report_free(&report);
  return status;
}

static int32_t work_on_a_model(walk *w) {
  static char text[1 << 20];
  static double memory[2 * MOST][VALUES];
  const neml2_source source = {.size = sizeof source, .path = w->path, .runtime = w->runtime};
  array inputs[MOST], outputs[MOST];
  neml2_model *model = NULL;
  neml2_tensor *parameter = NULL;
  int64_t ninputs = 0, noutputs = 0, nparameters = 0, index = 0;
  int32_t status;
  TRY(neml2_model_open(&model, &source));
  if (w->runtime) TRY(neml2_model_option_set_text(model, "kernels", "off"));
  TRY(neml2_model_option_set_number(model, "chunk", 8));
  TRY(neml2_model_option_set_number(model, "threads", w->threads));
  TRY(neml2_model_describe(text, sizeof text, NULL, model));
  keep_text(w, text);
  TRY(neml2_model_checksum(text, sizeof text, NULL, model));
  keep_text(w, text);
  TRY(variables_of(w, model, NEML2_INPUT, &ninputs, inputs, memory));
  TRY(variables_of(w, model, NEML2_OUTPUT, &noutputs, outputs, memory + MOST));
  TRY_MISTAKE(NEML2_ERROR_NAME, neml2_model_variable_find(&index, model, NEML2_INPUT, "strian"));
  TRY_MISTAKE(NEML2_ERROR_FILE, neml2_model_open(&model, &(neml2_source){.size = sizeof source, .path = "/nowhere"}));
  TRY(run_a_call(w, model, inputs, ninputs, outputs, noutputs));
  TRY(neml2_model_variable_count(&nparameters, model, NEML2_PARAMETER));
  if (nparameters > 0) {
    neml2_variable_info info = {.size = sizeof info};
    TRY(neml2_model_variable_inspect(&info, model, NEML2_PARAMETER, 0));
    TRY(neml2_model_parameter_get(&parameter, model, info.name));
    TRY(neml2_model_parameter_set(model, info.name, parameter));
  }
  TRY(run_over_tensors(w, model, inputs, ninputs, noutputs));
end:
  neml2_tensor_free(&parameter);
  neml2_model_free(&model);
  return status;
}

/* A package alone. */
static int32_t work_on_a_graph(walk *w) {
  const neml2_source source = {.size = sizeof source, .path = w->path, .runtime = NEML2_RUNTIME_BUILTIN};
  static double memory[MOST][VALUES];
  neml2_graph *graph = NULL;
  neml2_tensor *given[MOST] = {NULL}, *results[MOST] = {NULL};
  int64_t ninputs = 0, noutputs = 0;
  int32_t status, runtime = 0;
  TRY(neml2_graph_check(&runtime, &source));
  TRY(neml2_graph_open(&graph, &source));
  TRY(neml2_graph_variable_count(&ninputs, graph, NEML2_INPUT));
  TRY(neml2_graph_variable_count(&noutputs, graph, NEML2_OUTPUT));
  for (int64_t i = 0; i < ninputs; ++i) {
    neml2_graph_variable_info info = {.size = sizeof info};
    int64_t shape[3], size = 1;
    TRY(neml2_graph_variable_inspect(&info, graph, NEML2_INPUT, i));
    for (int64_t axis = 0; axis < info.ndim; ++axis)
      size *= shape[axis] = info.least[axis] == info.greatest[axis] ? info.least[axis] : POINTS;
    fill("strain", size / POINTS > 0 ? size / POINTS : 1, memory[i]);
    TRY(neml2_tensor_wrap(&given[i], memory[i], NEML2_FLOAT64, info.ndim, shape, NULL, NULL, NULL));
  }
  TRY(neml2_graph_run(results, noutputs, graph, given, ninputs));
  TRY(keep_tensors(w, results, noutputs));
end:
  free_tensors(given, MOST);
  free_tensors(results, MOST);
  neml2_graph_free(&graph);
  return status;
}

/* The generic behaviour of a plug-in, as MGIS calls it; layout as in capi/plugin/generic.cpp. */
typedef struct {
  const double *gradients, *forces, *mass_density, *properties, *states, *stored, *dissipated, *external;
} initial_state;
typedef struct {
  const double *gradients;
  double *forces;
  const double *mass_density, *properties;
  double *states, *stored, *dissipated;
  const double *external;
} final_state;
typedef struct {
  char *message;
  double dt;
  double *K, *rdt, *speed_of_sound;
  initial_state s0;
  final_state s1;
} behaviour_data;

/* Tells whether the words of a plug-in tell of a lack of memory: it has no status. */
static int32_t status_of(const char *message) {
  return strstr(message, "ut of memory") ? NEML2_ERROR_MEMORY : NEML2_ERROR_RUNTIME;
}

static int32_t work_on_a_plugin(walk *w) {
  static const double root = 1.4142135623730951, none[20];
  const double strain[6] = {4e-3, -1e-3, -2e-3, 3e-3 / root, -5e-3 / root, 2e-3 / root}, properties[2] = {200e3, 150};
  double stress[6] = {0}, states[13] = {0}, K[36], rdt = 1;
  char message[512] = "";
  behaviour_data data = {message,
                         1,
                         K,
                         &rdt,
                         NULL,
                         {none, none, none, properties, none, NULL, NULL, none},
                         {strain, stress, none, properties, states, NULL, NULL, none}};
  int (*integrate)(behaviour_data *);
  void *library = NULL, *function;
  /* Not dlopen(), of which the dynamic loader's part is tortured, too: here it is the host's. */
  for (int tries = 0; !(library = dlmopen(LM_ID_BASE, w->path, RTLD_NOW | RTLD_LOCAL));) {
    const char *reason = dlerror();
    w->failed(w, "dlopen", NEML2_ERROR_MEMORY, reason ? reason : "out of memory");
    if (!w->resumes || ++tries == 3) return NEML2_ERROR_MEMORY;
  }
  function = dlsym(library, "NEML2_Tridimensional");
  if (!function) return NEML2_ERROR_INTERNAL;
  memcpy(&integrate, &function, sizeof integrate);
  for (int tries = 0;;) {
    K[0] = 4;
    if (integrate(&data) == 1) break;
    w->failed(w, "NEML2_Tridimensional", status_of(message), message);
    if (!w->resumes || ++tries == 3) return status_of(message);
  }
  keep(w, 6, stress);
  keep(w, 13, states);
  keep(w, 36, K);
  /* The tables are filled when the library is opened: if they could not be, it offers no hypothesis. */
  if (*(unsigned short *)dlsym(library, "NEML2_nModellingHypotheses") == 1) {
    if (*(unsigned short *)dlsym(library, "NEML2_nMaterialProperties") != 2) return NEML2_ERROR_INTERNAL;
    if (*(unsigned short *)dlsym(library, "NEML2_nInternalStateVariables") != 3) return NEML2_ERROR_INTERNAL;
  }
  return NEML2_OK;
}

static const char *in_artifacts(const char *name) {
  static char path[4096];
  const char *folder = getenv("NEML2_TEST_ARTIFACTS");
  snprintf(path, sizeof path, "%s/%s", folder ? folder : ".", name);
  return path;
}

int walk_named(walk *w, const char *name, const char *plugin) {
  w->name = name;
  w->work = work_on_a_model;
  w->threads = 2;
  if (strcmp(name, "elasticity") == 0 || strcmp(name, "viscoplastic") == 0) {
    w->path = in_artifacts(name);
  } else if (strcmp(name, "elasticity-packages") == 0 || strcmp(name, "viscoplastic-packages") == 0) {
    w->path = in_artifacts(name[0] == 'e' ? "elasticity" : "viscoplastic");
    w->runtime = NEML2_RUNTIME_BUILTIN;
  } else if (strcmp(name, "graph") == 0) {
    w->path = in_artifacts("elasticity/cpu/float64/elasticity.pt2");
    w->work = work_on_a_graph;
  } else if (strcmp(name, "plugin") == 0 && plugin) {
    w->path = plugin;
    w->work = work_on_a_plugin;
  } else {
    return 0;
  }
  return 1;
}
