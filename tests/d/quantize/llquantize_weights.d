/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 38 and 39: the sixth argument is what is added. */
BEGIN
{
	@ = llquantize(3, 10, 0, 2, 10, 5);
	@ = llquantize(4, 10, 0, 2, 10, 15);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
               2 |                                         0        
               3 |@@@@@@@@@@                               5        
               4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           15       
               5 |                                         0        

*/
