/* os_ports.h: which program has a port of this machine. */
#ifndef RV_BASE_OS_PORTS_H
#define RV_BASE_OS_PORTS_H

#include <stddef.h>
#include <stdint.h>

/* Writes which process listens on a TCP port, as "sshd (process 123)", or "another process" if it
 * cannot be seen. Reads what the system reports of all processes: for a fault's text. */
void os_port_holder(uint16_t port, char *out, size_t cap);

#endif
