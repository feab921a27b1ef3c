#include "capi/abi/views.h"

#include <utility>

#include "capi/hypotheses/under_hypothesis.h"
#include "capi/views/large_strain.h"
#include "capi/views/material_axes.h"
#include "capi/views/view.h"

namespace neml2_capi::abi {
namespace {

static_assert(static_cast<int>(deformation::Measure::corotational) == NEML2_STRAIN_COROTATIONAL);
static_assert(static_cast<int>(deformation::Stress::kirchhoff) == NEML2_STRESS_KIRCHHOFF);

void add(ModelObject& model, std::unique_ptr<const model::Change> change) {
  auto view = std::make_shared<const model::View>(model.routes, std::move(change));
  model.value = view->model();
  model.routes = std::make_shared<const model::Routes>(model.value, std::move(view));
}

void require_choice(std::int32_t number, std::int32_t last, const char* field, const char* first_name) {
  if (number < 0 || number > last)
    throw Error(NEML2_ERROR_ARGUMENT, field,
                join("There is no ", field, " ", number, "; see ", first_name, " and the others."));
}

std::string_view text_of(const char* text) { return text ? std::string_view(text) : std::string_view(); }

model::Views views_of(const neml2_source& source) {
  model::Views views;
  views.material_axes = source.material_axes != 0;
  views.strain = text_of(source.strain);
  views.stress = text_of(source.stress);
  if (source.hypothesis) views.hypothesis = model::hypothesis_of(source.hypothesis).name;
  if (source.strain_measure) {
    views.strain_measure = deformation::name_of(static_cast<deformation::Measure>(source.strain_measure));
    views.stress_measure = deformation::name_of(static_cast<deformation::Stress>(source.stress_measure));
  }
  return views;
}

void add_hypothesis(ModelObject& model, const neml2_source& source) {
  const std::shared_ptr<const model::Routes> law = model.routes;
  auto reduction = std::make_unique<const model::Reduction>(law->model(), model::hypothesis_of(source.hypothesis),
                                                            text_of(source.strain), text_of(source.stress));
  model.value = model::Model::around({law, &law->model()}, reduction->boundary());
  model.routes = std::make_shared<const model::Routes>(
      model.value, std::make_shared<const model::UnderHypothesis>(law, std::move(reduction), model.text != nullptr));
}

}  // namespace

void add_views(ModelObject& model, const neml2_source& source) {
  require_choice(source.strain_measure, NEML2_STRAIN_COROTATIONAL, "strain_measure", "NEML2_STRAIN_OF_LAW");
  require_choice(source.stress_measure, NEML2_STRESS_KIRCHHOFF, "stress_measure", "NEML2_STRESS_PK1");
  require_choice(source.material_axes, 1, "material_axes", "0 for none, 1 for an input of each point");
  if (source.strain_measure == 0 && source.stress_measure != 0)
    throw Error(
        NEML2_ERROR_ARGUMENT, "stress_measure",
        "A stress measure belongs to a strain measure: give 'strain_measure', too, or leave 'stress_measure' 0.");
  if (source.strain_measure == 0 && source.material_axes == 0 && source.hypothesis == 0) return;
  require_host(*model.value, "A strain measure, material axes or a hypothesis are");
  if (source.strain_measure != 0 && source.hypothesis != 0)
    throw Error(NEML2_ERROR_UNSUPPORTED, "hypothesis",
                "A hypothesis is of small strains: leave 'strain_measure' 0, or 'hypothesis'.");
  if (source.material_axes) add(model, std::make_unique<const model::MaterialAxes>(*model.value));
  if (source.hypothesis) add_hypothesis(model, source);
  if (source.strain_measure)
    add(model, std::make_unique<const model::LargeStrain>(*model.value,
                                                          static_cast<deformation::Measure>(source.strain_measure),
                                                          static_cast<deformation::Stress>(source.stress_measure),
                                                          text_of(source.strain), text_of(source.stress)));
  model.value->note_views(views_of(source));
}

}  // namespace neml2_capi::abi
