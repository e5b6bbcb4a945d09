/* SPDX-License-Identifier: Apache-2.0 */
/* -xcpp, -xdefine and -xundef are -C, -D and -U; -xcpphdrs is -H. */
/* flags: -q -xcpp -xdefine=VALUE=5 -xdefine=GONE -xundef=GONE -xcpphdrs -xstdc=a */
/* stderr: limits.h */
#include <limits.h>
BEGIN
{
#ifdef GONE
	printf("GONE is there\n");
#endif
	printf("%d %d\n", VALUE, CHAR_BIT);
	exit(0);
}
/* output:
5 8

*/
