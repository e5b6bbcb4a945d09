/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 43: the message on stderr; the status stays 0. */
/* stderr: for probe ID 1 (dtrace:::BEGIN): invalid address (0x0) at BPF pc */
BEGIN
{
	x = *(int *)NULL;
	printf("wrong\n");
	exit(1);
}
BEGIN
{
	printf("next\n");
	exit(0);
}
/* output:
next

*/
