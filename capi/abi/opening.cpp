#include "capi/abi/opening.h"

#include "capi/abi/source.h"
#include "capi/archive/files.h"
#include "capi/base/error.h"
#include "capi/graph/backend.h"

namespace neml2_capi::abi {
namespace {

using graph::Runtime;

// Tells whether the kernels of an artifact for CUDA are there as text, and its packages are not.
bool has_only_text(const neml2_source& source, Device device) try {
  const artifact::Metadata on_host = metadata_of(source, {});
  const std::filesystem::path packages = on_host.leaf.parent_path().parent_path() / "cuda" / on_host.leaf.filename();
  return !archive::is_folder(packages) &&
         graph::on_devices([&] { return accelerator::has_text(on_host, graph::driver_of(device)); });
} catch (const Error&) {
  return false;  // to open it for CUDA tells why
}

bool is_by_text(const neml2_source& source, Device device, Runtime runtime) {
  if (device.type == Device::Type::cuda) return runtime == Runtime::automatic && has_only_text(source, device);
  if (device.type != Device::Type::opencl) return false;
  if (runtime != Runtime::automatic)
    throw Error(NEML2_ERROR_ARGUMENT, "runtime",
                join("The field 'runtime' is of packages, which do not run on ", device.str(), ": leave it 0."));
  return true;
}

}  // namespace

OpenedModel open_model(const neml2_source& source, Device device, Runtime runtime) {
  if (source.kernels && !device.is_host())
    throw Error(NEML2_ERROR_ARGUMENT, "kernels",
                join("Kernels that are linked in run on the CPU, not on ", device.str(), ": leave the field NULL."));
  const bool by_text = is_by_text(source, device, runtime);
  const Device of_packages = by_text ? Device() : device;
  OpenedModel opened{model::Model::load(metadata_of(source, of_packages), {runtime, of_packages}), nullptr};
  if (by_text)
    opened.text = graph::on_devices([&] { return std::make_shared<const accelerator::ByText>(*opened.model, device); });
  return opened;
}

}  // namespace neml2_capi::abi
