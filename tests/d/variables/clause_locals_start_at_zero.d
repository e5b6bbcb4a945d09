/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 19: each firing starts with 0. */
tick-10ms
{
	this->n++;
	i++;
	printf("%d\n", this->n);
}
tick-10ms
/i == 3/
{
	exit(0);
}
/* output:
1
1
1

*/
