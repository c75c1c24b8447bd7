#include "artifact/lld.h"

#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>

#include <mutex>

#include "support/strings.h"

LLD_HAS_DRIVER(elf)

namespace tenon::artifact {

Status RunLld(const std::vector<std::string>& arguments) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  std::vector<const char*> argv = {"ld.lld"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::string output, errors;
  llvm::raw_string_ostream output_stream(output), error_stream(errors);
  lld::Result result =
      lld::lldMain(argv, output_stream, error_stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode == 0) return Ok();
  return MakeError("linking failed: " + std::string(Trim(error_stream.str())));
}

}  // namespace tenon::artifact
