/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: the last step is cut by the limit. */
BEGIN
{
	@ = lquantize(24, 0, 25, 5);
	@ = lquantize(25, 0, 25, 5);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
              15 |                                         0        
              20 |@@@@@@@@@@@@@@@@@@@@                     1        
           >= 25 |@@@@@@@@@@@@@@@@@@@@                     1        

*/
