/* NULL if a pointer is needed is an error in every function, never a crash. */
#include "materials.h"

#define REFUSED(call) CHECK_STATUS(NEML2_ERROR_ARGUMENT, call)

static void of_tensors(void) {
  const int64_t shape[1] = {6};
  double data[6] = {0};
  neml2_tensor *tensor = NULL;
  struct DLManagedTensorVersioned *managed = NULL;
  REQUIRE_OK(neml2_tensor_create(&tensor, NEML2_FLOAT64, 1, shape));
  REFUSED(neml2_tensor_create(NULL, NEML2_FLOAT64, 1, shape));
  REFUSED(neml2_tensor_wrap(NULL, data, NEML2_FLOAT64, 1, shape, NULL, NULL, NULL));
  REFUSED(neml2_tensor_share(NULL, tensor));
  REFUSED(neml2_tensor_from_dlpack(NULL, managed));
  REFUSED(neml2_tensor_to_dlpack(NULL, tensor));
  REFUSED(neml2_tensor_to_dlpack(&managed, NULL));
  REFUSED(neml2_tensor_inspect(NULL, tensor));
  REFUSED(neml2_tensor_inspect(INFO(neml2_tensor_info), NULL));
  CHECK_OK(neml2_tensor_inspect(INFO(neml2_tensor_info), tensor));

  neml2_tensor *out = NULL;
  REFUSED(neml2_tensor_create(&out, NEML2_FLOAT64, 1, NULL));
  REFUSED(neml2_tensor_wrap(&out, NULL, NEML2_FLOAT64, 1, shape, NULL, NULL, NULL));
  REFUSED(neml2_tensor_wrap(&out, data, NEML2_FLOAT64, 1, NULL, NULL, NULL, NULL));
  REFUSED(neml2_tensor_share(&out, NULL));
  REFUSED(neml2_tensor_from_dlpack(&out, NULL));
  CHECK(out == NULL && managed == NULL);
  neml2_tensor_free(&tensor);
  neml2_tensor_free(&tensor);
  neml2_tensor_free(NULL);
}

static void of_graphs(void) {
  neml2_graph *graph = NULL;
  neml2_tensor *output = NULL;
  REFUSED(neml2_graph_open(NULL, SOURCE(.path = "x.pt2")));
  REFUSED(neml2_graph_open(&graph, SOURCE()));
  REFUSED(neml2_graph_open(&graph, NULL));
  REFUSED(neml2_graph_check(NULL, SOURCE()));
  REFUSED(neml2_graph_check(NULL, NULL));
  REFUSED(neml2_xla_handler_get(NULL));
  REFUSED(neml2_graph_inspect(INFO(neml2_graph_info), NULL));
  REFUSED(neml2_graph_variable_count(NULL, NULL, NEML2_INPUT));
  REFUSED(neml2_graph_variable_inspect(INFO(neml2_graph_variable_info), NULL, NEML2_INPUT, 0));
  REFUSED(neml2_graph_run(&output, 1, NULL, NULL, 0));
  CHECK(graph == NULL && output == NULL);
  neml2_graph_free(&graph);
  neml2_graph_free(NULL);
}

static void of_operators(void) {
  neml2_tensor *const *tensors = NULL;
  const int64_t *integers = NULL;
  const double *reals = NULL;
  const char *text = NULL;
  int64_t count = 0;
  REFUSED(neml2_operator_register(NULL, NULL, NULL));
  REFUSED(neml2_operator_register("mylib::scale(Tensor x) -> Tensor", NULL, NULL));
  REFUSED(neml2_operator_unregister(NULL));
  REFUSED(neml2_operator_call_count(&count, NULL, NEML2_INPUT));
  REFUSED(neml2_operator_call_find(&count, NULL, "x"));
  REFUSED(neml2_operator_call_inspect(INFO(neml2_argument_info), NULL, 0));
  REFUSED(neml2_operator_call_get_tensors(&tensors, NULL, 0));
  REFUSED(neml2_operator_call_get_integers(&integers, NULL, 0));
  REFUSED(neml2_operator_call_get_reals(&reals, NULL, 0));
  REFUSED(neml2_operator_call_get_text(&text, NULL, 0));
  REFUSED(neml2_operator_call_set_output(NULL, 0, NULL));
  CHECK(!tensors && !integers && !reals && !text);
}

static void of_schedulers(const char *root, const neml2_model *model) {
  neml2_scheduler *scheduler = NULL;
  neml2_model *out = NULL;
  int64_t count = 0;
  int32_t status = 0;
  REFUSED(neml2_scheduler_create(NULL));
  REQUIRE_OK(neml2_scheduler_create(&scheduler));
  REFUSED(neml2_scheduler_add(NULL, DEVICE(.device = NEML2_DEVICE_CPU, .batch_size = 1, .priority = 1.0)));
  REFUSED(neml2_scheduler_add(scheduler, NULL));
  REFUSED(neml2_scheduler_count(NULL, scheduler));
  REFUSED(neml2_scheduler_count(&count, NULL));
  REFUSED(neml2_scheduler_inspect(INFO(neml2_device), NULL, 0));
  REQUIRE_OK(neml2_scheduler_add(scheduler, DEVICE(.batch_size = 1)));
  REFUSED(neml2_scheduler_inspect(NULL, scheduler, 0));
  REFUSED(neml2_scheduler_keep_rank(NULL, 0, 1));
  REFUSED(neml2_model_open(NULL, SOURCE(.path = root, .scheduler = scheduler)));
  REFUSED(neml2_model_open(&out, SOURCE(.scheduler = scheduler)));
  REFUSED(neml2_model_points(NULL, model, 0));
  REFUSED(neml2_model_points(&count, NULL, 0));
  REFUSED(neml2_error_get(&status, NULL, NULL, 0, NULL, 7));
  REFUSED(neml2_error_count(NULL));
  CHECK(!out);
  neml2_scheduler_free(NULL);
  neml2_scheduler_free(&scheduler);
  neml2_scheduler_free(&scheduler);
}

static void of_models(const char *root) {
  neml2_model *model = load(root), *out = NULL;
  neml2_tensor *tensor = NULL, *value = NULL;
  double number = 0;
  int64_t count;
  const char *text;
  REQUIRE_OK(neml2_tensor_create(&value, NEML2_FLOAT64, 0, NULL));

  REFUSED(neml2_model_open(NULL, SOURCE(.path = root)));
  REFUSED(neml2_model_open(&out, NULL));
  REFUSED(neml2_model_open(&out, SOURCE()));
  REFUSED(neml2_model_inspect(NULL, model));
  REFUSED(neml2_model_inspect(INFO(neml2_model_info), NULL));
  REFUSED(neml2_libtorch_suggest(NULL));
  REFUSED(neml2_operator_declare(NULL));
  of_operators();
  of_schedulers(root, model);
  REFUSED(neml2_model_open(NULL, SOURCE(.path = "stub.i", .name = "model")));
  REFUSED(neml2_model_open(&out, SOURCE(.name = "model")));
  CHECK(out == NULL);
  REFUSED(neml2_model_variable_count(NULL, model, NEML2_INPUT));
  REFUSED(neml2_model_variable_count(&count, NULL, NEML2_INPUT));
  REFUSED(neml2_model_variable_find(NULL, model, NEML2_INPUT, "strain"));
  REFUSED(neml2_model_variable_find(&count, NULL, NEML2_INPUT, "strain"));
  REFUSED(neml2_model_variable_find(&count, model, NEML2_INPUT, NULL));
  REFUSED(neml2_model_variable_inspect(NULL, model, NEML2_INPUT, 0));
  REFUSED(neml2_model_variable_inspect(INFO(neml2_variable_info), NULL, NEML2_INPUT, 0));
  REFUSED(neml2_model_derivative_count(NULL, model, NEML2_INPUT));
  REFUSED(neml2_model_derivative_count(&count, NULL, NEML2_INPUT));
  REFUSED(neml2_model_derivative_inspect(INFO(neml2_derivative_info), NULL, NEML2_INPUT, 0));
  REFUSED(neml2_model_history_count(NULL, model));
  REFUSED(neml2_model_history_count(&count, NULL));
  REFUSED(neml2_model_history_inspect(INFO(neml2_history_info), NULL, 0));
  REFUSED(neml2_model_bound_count(NULL, model));
  REFUSED(neml2_model_bound_count(&count, NULL));
  REFUSED(neml2_model_bound_inspect(NULL, model, 0));
  REFUSED(neml2_model_bound_inspect(INFO(neml2_bound_info), NULL, 0));
  REFUSED(neml2_model_describe(NULL, 0, NULL, NULL));
  REFUSED(neml2_model_checksum(NULL, 0, NULL, NULL));
  REFUSED(neml2_source_describe(NULL, 0, NULL, SOURCE()));
  REFUSED(neml2_source_describe(NULL, 0, NULL, NULL));
  CHECK_OK(neml2_model_describe(NULL, 0, NULL, model));
  REFUSED(neml2_model_parameter_get(NULL, model, "elasticity.E"));
  REFUSED(neml2_model_parameter_get(&tensor, NULL, "elasticity.E"));
  REFUSED(neml2_model_parameter_get(&tensor, model, NULL));
  REFUSED(neml2_model_parameter_set(NULL, "elasticity.E", value));
  REFUSED(neml2_model_parameter_set(model, NULL, value));
  REFUSED(neml2_model_parameter_set(model, "elasticity.E", NULL));
  REFUSED(neml2_model_option_count(NULL, model));
  REFUSED(neml2_model_option_count(&count, NULL));
  REFUSED(neml2_model_option_inspect(INFO(neml2_option_info), NULL, 0));
  REFUSED(neml2_model_option_set_number(NULL, "atol", 1));
  REFUSED(neml2_model_option_set_number(model, NULL, 1));
  REFUSED(neml2_model_option_get_number(NULL, model, "atol"));
  REFUSED(neml2_model_option_get_number(&number, NULL, "atol"));
  REFUSED(neml2_model_option_get_number(&number, model, NULL));
  REFUSED(neml2_model_option_set_text(NULL, "ls_type", "BACKTRACKING"));
  REFUSED(neml2_model_option_set_text(model, NULL, "BACKTRACKING"));
  REFUSED(neml2_model_option_set_text(model, "ls_type", NULL));
  REFUSED(neml2_model_option_get_text(NULL, model, "ls_type"));
  REFUSED(neml2_model_option_get_text(&text, NULL, "ls_type"));
  REFUSED(neml2_model_option_get_text(&text, model, NULL));
  REFUSED(neml2_model_forward(NULL, NULL, model, &value, NULL));
  REFUSED(neml2_model_forward(&tensor, NULL, NULL, &value, NULL));
  REFUSED(neml2_model_forward(&tensor, NULL, model, NULL, NULL));
  REFUSED(neml2_model_jvp(NULL, NULL, NULL, model, &value, &value, NULL));
  REFUSED(neml2_model_jvp(NULL, &tensor, NULL, NULL, &value, &value, NULL));
  REFUSED(neml2_model_jvp(NULL, &tensor, NULL, model, NULL, &value, NULL));
  REFUSED(neml2_model_jvp(NULL, &tensor, NULL, model, &value, NULL, NULL));
  REFUSED(neml2_model_vjp(NULL, NULL, NULL, model, NEML2_INPUT, &value, &value, NULL));
  REFUSED(neml2_model_vjp(NULL, &tensor, NULL, NULL, NEML2_INPUT, &value, &value, NULL));
  REFUSED(neml2_model_vjp(NULL, &tensor, NULL, model, NEML2_INPUT, NULL, &value, NULL));
  REFUSED(neml2_model_vjp(NULL, &tensor, NULL, model, NEML2_INPUT, &value, NULL, NULL));
  REFUSED(neml2_model_jacobian(NULL, NULL, NULL, model, NEML2_INPUT, &value, NULL));
  REFUSED(neml2_model_jacobian(NULL, &tensor, NULL, NULL, NEML2_INPUT, &value, NULL));
  REFUSED(neml2_model_jacobian(NULL, &tensor, NULL, model, NEML2_INPUT, NULL, NULL));
  REFUSED(neml2_model_jacobian(NULL, NULL, NULL, model, NEML2_PARAMETER, &value, NULL));
  REFUSED(neml2_model_jacobian(NULL, &tensor, NULL, NULL, NEML2_PARAMETER, &value, NULL));
  REFUSED(neml2_model_jacobian(NULL, &tensor, NULL, model, NEML2_PARAMETER, NULL, NULL));
  REFUSED(neml2_model_vjp(NULL, NULL, NULL, model, NEML2_PARAMETER, &value, &value, NULL));
  REFUSED(neml2_model_vjp(NULL, &tensor, NULL, NULL, NEML2_PARAMETER, &value, &value, NULL));
  REFUSED(neml2_model_vjp(NULL, &tensor, NULL, model, NEML2_PARAMETER, NULL, &value, NULL));
  REFUSED(neml2_model_vjp(NULL, &tensor, NULL, model, NEML2_PARAMETER, &value, NULL, NULL));
  REFUSED(neml2_report_get_unknown(NULL, NULL, 0));
  REFUSED(neml2_report_get_unknown(&tensor, NULL, 0));
  REFUSED(neml2_report_get(NULL, NULL, NEML2_REPORT_STATUS));
  REFUSED(neml2_report_get(&tensor, NULL, NEML2_REPORT_STATUS));
  CHECK(tensor == NULL);
  CHECK_ELASTICITY(model);

  neml2_tensor_free(&value);
  neml2_model_free(&model);
  neml2_model_free(NULL);
  neml2_report_free(NULL);
}

static void of_calls(const char *root) {
  double strain[6] = {0}, stress[6];
  neml2_model *model = load(root);
  neml2_call *call = NULL;
  REFUSED(neml2_call_create(NULL, model));
  REFUSED(neml2_call_create(&call, NULL));
  CHECK(call == NULL);
  REQUIRE_OK(neml2_call_create(&call, model));
  REFUSED(neml2_call_bind(NULL, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  REFUSED(neml2_call_bind(call, NEML2_INPUT, NULL, strain, NEML2_FLOAT64, 6));
  REFUSED(neml2_call_bind(NULL, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  REFUSED(neml2_call_bind(call, NEML2_OUTPUT, NULL, stress, NEML2_FLOAT64, 6));
  REFUSED(neml2_call_bind(NULL, NEML2_PARAMETER, "elasticity.E", strain, NEML2_FLOAT64, 0));
  REFUSED(neml2_call_bind(call, NEML2_PARAMETER, NULL, strain, NEML2_FLOAT64, 0));
  REFUSED(neml2_call_bind_derivative(NULL, NEML2_INPUT, "stress", "strain", stress, NEML2_FLOAT64, 36));
  REFUSED(neml2_call_bind_derivative(call, NEML2_INPUT, NULL, "strain", stress, NEML2_FLOAT64, 36));
  REFUSED(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", NULL, stress, NEML2_FLOAT64, 36));
  REFUSED(neml2_call_block_order_set(NULL, NEML2_INPUT_FIRST));
  REFUSED(neml2_call_bind(NULL, NEML2_TANGENT, "strain", strain, NEML2_FLOAT64, 6));
  REFUSED(neml2_call_bind(call, NEML2_TANGENT, NULL, strain, NEML2_FLOAT64, 6));
  REFUSED(neml2_call_bind(NULL, NEML2_JVP, "stress", stress, NEML2_FLOAT64, 6));
  REFUSED(neml2_call_bind(call, NEML2_JVP, NULL, stress, NEML2_FLOAT64, 6));
  REFUSED(neml2_call_bind(NULL, NEML2_COTANGENT, "stress", strain, NEML2_FLOAT64, 6));
  REFUSED(neml2_call_bind(call, NEML2_COTANGENT, NULL, strain, NEML2_FLOAT64, 6));
  REFUSED(neml2_call_bind(NULL, NEML2_ADJOINT, "strain", stress, NEML2_FLOAT64, 6));
  REFUSED(neml2_call_bind(call, NEML2_ADJOINT, NULL, stress, NEML2_FLOAT64, 6));
  REFUSED(neml2_call_bind_report(NULL, NEML2_REPORT_STATUS, strain, 1));
  REFUSED(neml2_call_run(NULL, 1));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_STATUS, NULL, 1)); /* takes a binding back */
  neml2_call_free(&call);
  neml2_call_free(NULL);
  CHECK_ELASTICITY(model);
  neml2_model_free(&model);
}

/* What a face in another language finds by itself is read like any other error. */
static void of_recorded_errors(void) {
  CHECK_STATUS(NEML2_ERROR_SHAPE,
               neml2_error_record(NEML2_ERROR_SHAPE, NEML2_CAUSE_NONE, "strain", "The array is too short."));
  CHECK(neml2_error_status() == NEML2_ERROR_SHAPE);
  CHECK_ABOUT("strain");
  CHECK_SAYS("The array is too short.");
  CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_error_record(NEML2_NOT_CONVERGED, NEML2_CAUSE_NONE, NULL, NULL));
  CHECK_ABOUT("");
  CHECK(strcmp(check_message(), "") == 0);
  REFUSED(neml2_error_record(NEML2_OK, NEML2_CAUSE_NONE, "strain", "All is well."));
  CHECK_ABOUT("status");
}

int main(void) {
  CHECK(neml2_error_status() == NEML2_OK); /* none failed yet */
  CHECK(neml2_abi_version() == NEML2_ABI_VERSION);
  CHECK(strlen(neml2_version()) > 0);
  CHECK_OK(neml2_error_message(NULL, 0, NULL));
  of_tensors();
  of_graphs();
  of_models(artifact("elasticity"));
  of_calls(artifact("elasticity"));
  of_recorded_errors();
  return CHECK_RESULT();
}
