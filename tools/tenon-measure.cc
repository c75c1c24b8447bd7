// tenon-measure: the process in which `tenon tune` runs kernels. It is started by it, reads
// requests from standard input and answers on standard output (measure/protocol.h).
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "measure/worker.h"

int main(int argc, char** argv) {
  tenon::measure::WorkerLimits limits;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (argv[i] == std::string_view("--most-bytes")) limits.most_bytes = std::atoll(argv[i + 1]);
  }
  return tenon::measure::RunWorker(STDIN_FILENO, STDOUT_FILENO, limits);
}
