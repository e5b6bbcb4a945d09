/* SPDX-License-Identifier: Apache-2.0 */
/* -U undoes a definition. */
/* flags: -q -C -U__linux__ */
BEGIN
{
#ifdef __linux__
	printf("defined\n");
#else
	printf("not defined\n");
#endif
	exit(0);
}
/* output:
not defined

*/
