/* os_secrets.h: keeps the keys in a process's memory out of files and of other processes. */
#ifndef RV_BASE_OS_SECRETS_H
#define RV_BASE_OS_SECRETS_H

/* Makes the process write no core dump, and forbids other processes of the same user to trace it or
 * to read its memory; programs that it starts may be traced, and write none either. */
void os_secrets_keep(void);

#endif
