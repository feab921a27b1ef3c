/* Broken artifacts: the error names the file and says what was expected; a model that is loaded is not disturbed. */
#define _POSIX_C_SOURCE 200809L
#include "files.h"
#include "materials.h"

static const char *const elasticity_package = "cpu/float64/elasticity.pt2";

static void check_refused(const char *root, int32_t expected) {
  neml2_model *model = NULL;
  CHECK_STATUS(expected, neml2_model_open(&model, SOURCE(.path = root)));
  CHECK(model == NULL);
  neml2_model_free(&model);
}

static void missing_folder(void) {
  check_refused("/nonexistent/elasticity", NEML2_ERROR_FILE);
  CHECK_SAYS("/nonexistent/elasticity");
  check_refused("", NEML2_ERROR_FILE);
}

static void missing_metadata(const char *root) {
  const char *copy = copy_of(root);
  remove_one(join_path(copy, "metadata.json"));
  check_refused(copy, NEML2_ERROR_FILE);
  CHECK_SAYS("metadata.json");
  remove_copy(copy);
}

static void metadata_that_is_not_json(const char *root) {
  const char *const contents[] = {"", "not json", "{\"schema_version\": 14", "[]", "null"};
  for (int i = 0; i < 5; ++i) {
    const char *copy = copy_of(root);
    write_bytes(join_path(copy, "metadata.json"), contents[i], strlen(contents[i]));
    check_refused(copy, NEML2_ERROR_ARTIFACT);
    CHECK_SAYS("metadata.json");
    remove_copy(copy);
  }
}

static void unknown_schema(const char *root) {
  const char *copy = copy_of(root);
  replace_text(join_path(copy, "metadata.json"), "\"schema_version\": 14", "\"schema_version\": 9999");
  check_refused(copy, NEML2_ERROR_UNSUPPORTED);
  CHECK_SAYS("9999");
  CHECK_SAYS("14"); /* what is supported */
  remove_copy(copy);
}

static void field_of_the_wrong_kind(const char *root) {
  const char *copy = copy_of(root);
  replace_text(join_path(copy, "metadata.json"), "\"package\": \"elasticity.pt2\"", "\"package\": 7");
  check_refused(copy, NEML2_ERROR_ARTIFACT);
  CHECK_SAYS("package");
  CHECK_SAYS("segments");
  remove_copy(copy);
}

static void missing_leaf(const char *root) {
  neml2_model *model = NULL;
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED,
               neml2_model_open(&model, SOURCE(.path = root, .device = NEML2_DEVICE_CUDA, .dtype = NEML2_FLOAT32)));
  CHECK_SAYS("cuda");
  CHECK_SAYS("cpu/float64"); /* what is there */
  CHECK(model == NULL);
}

static void missing_package(const char *elasticity, const char *viscoplastic) {
  const char *copy = copy_of(elasticity);
  remove_one(join_path(copy, elasticity_package));
  check_refused(copy, NEML2_ERROR_FILE);
  CHECK_SAYS("elasticity.pt2");
  remove_copy(copy);

  const char *const packages[] = {"residual", "jacobian", "solve", "predictor"};
  for (int i = 0; i < 4; ++i) {
    char name[64];
    snprintf(name, sizeof name, "cpu/float64/viscoplastic_%s.pt2", packages[i]);
    copy = copy_of(viscoplastic);
    remove_one(join_path(copy, name));
    check_refused(copy, NEML2_ERROR_FILE);
    CHECK_SAYS(strrchr(name, '/') + 1);
    remove_copy(copy);
  }
}

static void truncated_package(const char *root) {
  size_t size;
  char *bytes = read_bytes(join_path(root, elasticity_package), &size);
  const size_t kept[] = {0, 10, 1000, size / 2, size - 1};
  for (int i = 0; i < 5; ++i) {
    const char *copy = copy_of(root);
    write_bytes(join_path(copy, elasticity_package), bytes, kept[i]);
    check_refused(copy, NEML2_ERROR_ARTIFACT);
    CHECK_SAYS("elasticity.pt2");
    remove_copy(copy);
  }
  free(bytes);
}

static void damaged_package(const char *root) {
  size_t size;
  const char *copy = copy_of(root);
  char *bytes = read_bytes(join_path(copy, elasticity_package), &size);
  bytes[size / 2] ^= 1; /* within the shared object */
  write_bytes(join_path(copy, elasticity_package), bytes, size);
  check_refused(copy, NEML2_ERROR_ARTIFACT);
  CHECK_SAYS("elasticity.pt2");
  free(bytes);
  remove_copy(copy);
}

static void package_for_another_machine(const char *root) {
  const char *copy = copy_of(root);
  CHECK(patch_archive(join_path(copy, elasticity_package), "metadata.json",
                      "\"AOTI_MACHINE\": \"x86_64\", \"AOTI_CPU_ISA\": \"AVX2\"",
                      "\"AOTI_MACHINE\":\"aarch64\", \"AOTI_CPU_ISA\":\"ASIMD\"") > 0);
  check_refused(copy, NEML2_ERROR_UNSUPPORTED);
  CHECK_SAYS("elasticity.pt2");
  CHECK_SAYS("aarch64");
  remove_copy(copy);
}

static void package_for_another_instruction_set(const char *root) {
  const char *copy = copy_of(root);
  CHECK(patch_archive(join_path(copy, elasticity_package), "metadata.json", "\"AVX2\"", "\"VSX4\"") > 0);
  check_refused(copy, NEML2_ERROR_UNSUPPORTED);
  CHECK_SAYS("elasticity.pt2");
  CHECK_SAYS("VSX4");
  remove_copy(copy);
}

static void package_for_another_device(const char *root) {
  const char *copy = copy_of(root);
  CHECK(patch_archive(join_path(copy, elasticity_package), "metadata.json", "\"AOTI_DEVICE_KEY\": \"cpu\"",
                      "\"AOTI_DEVICE_KEY\":\"cuda\"") > 0);
  check_refused(copy, NEML2_ERROR_UNSUPPORTED);
  CHECK_SAYS("elasticity.pt2");
  CHECK_SAYS("cuda");
  CHECK_SAYS("cpu");
  remove_copy(copy);
}

static int is_mapped(const char *text) {
  char line[PATH_SIZE];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) found |= strstr(line, text) != NULL;
  if (maps) fclose(maps);
  return found;
}

/* Before any package is loaded. */
static void a_check_maps_no_code(const char *root) {
  const char *copy = copy_of(root), *path = join_path(copy, "checked.pt2");
  CHECK(rename(join_path(copy, elasticity_package), path) == 0);
  CHECK_OK(neml2_graph_check(NULL, SOURCE(.path = path)));
  CHECK(!is_mapped("checked") && !is_mapped("memfd"));
  remove_copy(copy);
}

static void a_check_refuses_what_loading_does(const char *root) {
  neml2_graph *graph = NULL;
  char refused[PATH_SIZE] = "", reason[PATH_SIZE] = "";
  const char *copy = copy_of(root), *path = join_path(copy, elasticity_package);
  CHECK_STATUS(NEML2_ERROR_FILE, neml2_graph_check(NULL, SOURCE(.path = "/nonexistent/graph.pt2")));
  CHECK_STATUS(NEML2_ERROR_ARTIFACT, neml2_graph_check(NULL, SOURCE(.path = join_path(root, "metadata.json"))));
  CHECK(patch_archive(path, "metadata.json", "\"AVX2\"", "\"VSX4\"") > 0);
  CHECK(patch_archive(path, ".wrapper.cpp", "void AOTInductorModel::run_impl(", "void AOTInductorModel::run_away(") >
        0);
  CHECK_STATUS(NEML2_ERROR_ARTIFACT, neml2_graph_open(&graph, SOURCE(.path = path)));
  neml2_error_message(refused, sizeof refused, NULL);
  CHECK_STATUS(NEML2_ERROR_ARTIFACT, neml2_graph_check(NULL, SOURCE(.path = path)));
  neml2_error_message(reason, sizeof reason, NULL);
  CHECK(strcmp(refused, reason) == 0);
  CHECK_SAYS("elasticity.pt2: The source in the package cannot be understood");
  CHECK_SAYS("\nelasticity.pt2: The package was compiled for the unknown instruction set \"VSX4\"");
  remove_copy(copy);
}

static void graph_of_a_file_that_is_no_package(const char *root) {
  neml2_graph *graph = NULL;
  CHECK_STATUS(NEML2_ERROR_FILE, neml2_graph_open(&graph, SOURCE(.path = "/nonexistent/graph.pt2")));
  CHECK_SAYS("/nonexistent/graph.pt2");
  CHECK_STATUS(NEML2_ERROR_ARTIFACT, neml2_graph_open(&graph, SOURCE(.path = join_path(root, "metadata.json"))));
  CHECK_SAYS("metadata.json");
  CHECK(graph == NULL);
}

static void stubs(const char *root) {
  char stub[PATH_SIZE];
  neml2_model *model = NULL;
  CHECK_STATUS(NEML2_ERROR_FILE, neml2_model_open(&model, SOURCE(.path = "/nonexistent/stub.i", .name = "elasticity")));
  CHECK_SAYS("/nonexistent/stub.i");

  const char *copy = copy_of(root); /* .../artifact; a stub beside it refers to it */
  snprintf(stub, sizeof stub, "%s_aoti.i", copy);
  const char *text = "[Models]\n  [elasticity]\n    type = AOTIModel\n    artifact_path = 'artifact'\n  []\n[]\n";
  write_bytes(stub, text, strlen(text));
  if (CHECK_OK(neml2_model_open(&model, SOURCE(.path = stub, .name = "elasticity")))) CHECK_ELASTICITY(model);
  neml2_model_free(&model);
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_open(&model, SOURCE(.path = stub, .name = "plasticity")));
  CHECK_SAYS("plasticity");
  CHECK_SAYS("elasticity");
  write_bytes(stub, "[Models", 7);
  CHECK_STATUS(NEML2_ERROR_ARTIFACT, neml2_model_open(&model, SOURCE(.path = stub, .name = "elasticity")));
  CHECK(model == NULL);
  remove_copy(copy);
}

int main(void) {
  a_check_maps_no_code(artifact("elasticity"));
  neml2_model *model = load(artifact("elasticity"));
  missing_folder();
  missing_metadata(artifact("elasticity"));
  metadata_that_is_not_json(artifact("elasticity"));
  unknown_schema(artifact("elasticity"));
  field_of_the_wrong_kind(artifact("elasticity"));
  missing_leaf(artifact("elasticity"));
  missing_package(artifact("elasticity"), artifact("viscoplastic"));
  truncated_package(artifact("elasticity"));
  damaged_package(artifact("elasticity"));
  a_check_refuses_what_loading_does(artifact("elasticity"));
  package_for_another_machine(artifact("elasticity"));
  package_for_another_instruction_set(artifact("elasticity"));
  package_for_another_device(artifact("elasticity"));
  graph_of_a_file_that_is_no_package(artifact("elasticity"));
  stubs(artifact("elasticity"));
  CHECK_ELASTICITY(model);
  neml2_model_free(&model);
  return CHECK_RESULT();
}
