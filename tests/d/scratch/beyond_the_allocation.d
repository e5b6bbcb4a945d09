/* SPDX-License-Identifier: Apache-2.0 */
/* Stores far beyond what was allocated fault. */
BEGIN
{
	this->p = (char *)alloca(8);
	this->i = 100000000;
	this->p[this->i] = 1;
	printf("wrong\n");
}
BEGIN
{
	exit(0);
}
ERROR
{
	printf("fault\n");
}
/* output:
fault

*/
