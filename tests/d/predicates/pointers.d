/* SPDX-License-Identifier: Apache-2.0 */
/* A pointer is true when it is not NULL. */
BEGIN
/curthread/
{
	printf("thread\n");
	exit(0);
}
/* output:
thread

*/
