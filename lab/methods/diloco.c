/* diloco.c: k replicas, H inner steps each, one averaged outer gradient, one outer step (arXiv
 * 2311.08105, algorithm 1): the run that workers do over the network, without the network. With
 * fragments it is Streaming DiLoCo (2501.18512); with inner muon MuLoCo (2505.23725). The other
 * methods of this kind are settings of it, with a name. */
#include "lab/methods/methods.h"
#include "lab/methods/synchronous.h"

const struct lab_method lab_method_diloco = {.name = "diloco", SYNCHRONOUS_METHOD};
