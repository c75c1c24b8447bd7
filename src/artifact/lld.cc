#include "artifact/lld.h"

#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>

#include <mutex>

#include "support/strings.h"

LLD_HAS_DRIVER(elf)
LLD_HAS_DRIVER(wasm)

namespace tenon::artifact {

Status RunLld(const char* linker, const std::vector<std::string>& arguments) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  std::vector<const char*> argv = {linker};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::string output, errors;
  llvm::raw_string_ostream output_stream(output), error_stream(errors);
  lld::Result result = lld::lldMain(argv, output_stream, error_stream,
                                    {{lld::Gnu, &lld::elf::link}, {lld::Wasm, &lld::wasm::link}});
  if (result.retCode == 0) return Ok();
  return MakeError("linking failed: " + std::string(Trim(error_stream.str())));
}

}  // namespace tenon::artifact
