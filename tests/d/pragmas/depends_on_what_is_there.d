/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries, modules and providers. */
#pragma D depends_on library io.d
#pragma D depends_on module vmlinux
#pragma D depends_on provider syscall
BEGIN
{
	printf("fine\n");
	exit(0);
}
/* output:
fine

*/
