#include <stdio.h>
#include <tenon/c_api.h>

int main(int argc, char** argv) {
  tn_module_t* module;
  if (argc != 2 || tn_module_load(argv[1], &module) != 0) {
    fprintf(stderr, "%s\n", tn_last_error(NULL));
    return 1;
  }
  int32_t inputs = tn_module_num_inputs(module);
  tn_module_free(module);
  return inputs == 2 ? 0 : 3;
}
