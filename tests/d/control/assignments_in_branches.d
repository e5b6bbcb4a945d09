/* SPDX-License-Identifier: Apache-2.0 */
/* Branches may assign, to all scopes. */
BEGIN
{
	this->a = 1;
	if (this->a) {
		this->a = 2;
		b = "then";
		self->c = 3;
	} else {
		b = "else";
	}
	printf("%d %s %d\n", this->a, b, self->c);
	exit(0);
}
/* output:
2 then 3

*/
