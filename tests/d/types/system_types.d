/* SPDX-License-Identifier: Apache-2.0 */
/* Types of the operating system that D knows. */
BEGIN
{
	printf("%d %d %d\n", sizeof (pid_t), sizeof (size_t), sizeof (uid_t));
	exit(0);
}
/* output:
4 8 4

*/
