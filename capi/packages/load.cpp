#include "capi/packages/load.h"

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "capi/archive/archive.h"
#include "capi/base/error.h"
#include "capi/base/json_document.h"
#include "capi/loader/elf.h"
#include "capi/loader/image.h"
#include "capi/loader/isa.h"
#include "capi/package/call_spec.h"
#include "capi/package/collected_errors.h"
#include "capi/package/extern_nodes.h"
#include "capi/package/source.h"
#include "capi/packages/builtin_graph.h"
#include "capi/packages/elsewhere.h"

namespace neml2_capi::aoti {
namespace {

std::string_view entry_of(const archive::Archive& archive, std::string_view suffix) {
  const auto entry = archive.find(suffix);
  if (!entry)
    throw Error(NEML2_ERROR_ARTIFACT, "",
                join("The archive has no entry *", suffix,
                     ". Pass a .pt2 package as neml2-compile writes it, with its source."));
  return *entry;
}

struct Metadata {
  Target target;
  std::string notes;  // of the exporter, in JSON; empty if there are none
};

[[noreturn]] void malformed_metadata(const std::string& problem) {
  throw Error(NEML2_ERROR_ARTIFACT, "",
              join("The metadata in the package is malformed: ", problem, ". Compile the model again."));
}

Metadata read_metadata(std::string_view text) {
  try {
    const JsonDocument json(text);
    const Json document = json.root();
    Metadata metadata;
    metadata.target.device = document.at("AOTI_DEVICE_KEY").text();
    metadata.target.machine = document.at("AOTI_MACHINE").text();
    metadata.target.instruction_sets = document.at("AOTI_CPU_ISA").text();
    if (const auto notes = document.find(exporter_notes)) metadata.notes = notes->text();
    return metadata;
  } catch (const JsonError& error) {
    malformed_metadata(error.what());
  }
}

// Contents of an archive that passed the checks.
struct Contents {
  Runtime runtime = Runtime::builtin;
  Signature signature;
  std::vector<OperatorNode> nodes;
  std::vector<KernelFile> kernels;  // code of a device
  Device device;
  Bound bound;  // opens it if it is bound to libtorch
};

const Elsewhere& libtorch() {
  if (!elsewhere) graph::refuse_without_backend("run packages on libtorch");
  return *elsewhere;
}

void bind_to_builtin(Contents& contents, std::string_view object) {
  contents.runtime = Runtime::builtin;
  contents.bound = {bind_to_provider(object, provider_file), {}};
}

void bind_to_libtorch(Contents& contents, std::string_view object) {
  contents.runtime = Runtime::libtorch;
  contents.bound = libtorch().bind(object, contents.nodes);
}

// Binds to libtorch if the built-in provider lacks something. If libtorch lacks something too, the error tells
// both reasons.
void bind_to_either(Contents& contents, std::string_view object) {
  try {
    bind_to_builtin(contents, object);
    resolve_builtin(contents.bound.object, contents.signature, contents.nodes);
  } catch (const Error& error) {
    if (error.status() != NEML2_ERROR_UNSUPPORTED) throw;
    Bound with_builtin = std::move(contents.bound);
    try {
      bind_to_libtorch(contents, object);
    } catch (const Error& other) {
      contents.bound = std::move(with_builtin);
      throw Error(error.status(), error.subject(), join(error.what(), " Nor can libtorch run it: ", other.what()),
                  other.cause());
    }
  }
}

// Returns the device that the package will run on. Devices other than the CPU need libtorch.
Device device_for(const Target& target, const Wanted& wanted) {
  const Device own{target.device == "cuda" ? Device::Type::cuda : Device::Type::cpu};
  const Device device = wanted.device.value_or(own);
  if (device.type != own.type)
    throw Error(NEML2_ERROR_UNSUPPORTED, "",
                join("The package was compiled for the device \"", target.device, "\", and is wanted on ", device.str(),
                     ". Compile the model with --device ", device.is_host() ? "cpu" : "cuda", "."));
  if (device.type == Device::Type::cuda && wanted.runtime == Runtime::builtin)
    throw Error(
        NEML2_ERROR_UNSUPPORTED, "",
        "The package was compiled for the device \"cuda\", and the built-in runtime runs on \"cpu\" only. Load it "
        "with the runtime libtorch.");
  return device;
}

void require_libtorch(Device device) {
  if (device.is_host()) return;
  try {
    libtorch().require(device);
  } catch (const Error& error) {
    if (device.type == Device::Type::cpu) throw;
    throw Error(NEML2_ERROR_UNSUPPORTED, "",
                join("The package was compiled for the device \"cuda\", which needs libtorch: ", error.what()),
                error.cause());
  }
}

Runtime runtime_for(Device device, Runtime wanted) {
  return device.is_host() && wanted != Runtime::tensors ? wanted : Runtime::libtorch;
}

// Reads and checks all that needs no mapped code.
Contents read_checked(const archive::Archive& archive, const std::string& package, const Wanted& wanted) {
  Contents contents;
  Metadata metadata;
  CollectedErrors errors(package);
  const Target& target = metadata.target;
  // A package for another device or machine ends the checks: it may have no code.
  errors.collect([&] {
    metadata = read_metadata(entry_of(archive, ".wrapper_metadata.json"));
    check_machine(target);
    contents.device = device_for(target, wanted);
    require_libtorch(contents.device);
  });
  errors.raise_if_any();
  const Runtime runtime = runtime_for(contents.device, wanted.runtime);
  errors.collect([&] {
    const std::string_view source = entry_of(archive, ".wrapper.cpp");
    contents.signature = read_signature(source);
    name_tensors(contents.signature, metadata.notes);
    if (const auto json = archive.find(".wrapper.json")) contents.nodes = parse_extern_nodes(*json, source);
    if (contents.device.type == Device::Type::cuda)
      for (const auto& [name, bytes] : archive.find_all(".cubin"))
        contents.kernels.push_back({name, std::string(bytes)});
  });
  errors.collect([&] {
    const std::string_view object = entry_of(archive, ".wrapper.so");
    switch (runtime) {
      case Runtime::automatic: return bind_to_either(contents, object);
      case Runtime::tensors:
      case Runtime::libtorch: return bind_to_libtorch(contents, object);
      case Runtime::builtin: return bind_to_builtin(contents, object);
    }
  });
  if (runtime == Runtime::builtin)
    errors.collect([&] { resolve_builtin(contents.bound.object, contents.signature, contents.nodes); });
  errors.collect([&] { check_processor(target, contents.bound.object.producers); });
  errors.collect([&] { contents.bound.object.versions.check(); });
  errors.raise_if_any();
  return contents;
}

std::shared_ptr<Graph> open(const archive::Archive& archive, const std::string& package, const Wanted& wanted) {
  Contents contents = read_checked(archive, package, wanted);
  Image& image = Image::map(archive.path().stem().string(), contents.bound.object.bytes);
  if (contents.bound.open)
    return contents.bound.open(package, std::move(contents.signature), image, contents.device, contents.kernels);
  return open_builtin(package, std::move(contents.signature), std::move(contents.nodes), image);
}

// Reads an archive. Every error names the package.
template <class Read>
auto naming_package(Read&& read, const graph::Source& source, const Wanted& wanted) {
  const std::string package = source.content ? "the package in memory" : source.path.filename().string();
  try {
    return read(source.content ? archive::Archive(package, *source.content) : archive::Archive(source.path), package,
                wanted);
  } catch (const Error& error) {
    if (!error.subject().empty()) throw;
    throw Error(error.status(), package, join(package, ": ", error.what()), error.cause());
  } catch (const std::length_error& error) {
    throw Error(NEML2_ERROR_UNSUPPORTED, package, join(package, ": ", error.what()));
  }
}

}  // namespace

Runtime check_package(const graph::Source& source, const Wanted& wanted) {
  return naming_package(read_checked, source, wanted).runtime;
}

std::shared_ptr<Graph> load_graph(const graph::Source& source, const Wanted& wanted) {
  return naming_package(open, source, wanted);
}

}  // namespace neml2_capi::aoti
