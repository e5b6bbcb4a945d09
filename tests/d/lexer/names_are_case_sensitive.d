/* SPDX-License-Identifier: Apache-2.0 */
/* Two variables whose names differ in case. */
BEGIN
{
	name = 1;
	Name = 2;
	_name = 3;
	printf("%d %d %d\n", name, Name, _name);
	exit(0);
}
/* output:
1 2 3

*/
